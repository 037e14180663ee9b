import { useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import { usePolled } from '../api/poll.ts'
import type { Dead, DeadAction, QueueState, Queues as QueuesAnswer, Session } from '../api/types.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { useNow } from '../parts/app-state.ts'
import { Badge, Blank, Button, Facts, Loaded, Notice, Panel, View } from '../parts/basics.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { tell } from '../parts/toasts.tsx'
import { brief, count, distance, duration, moment, plain } from '../words/format.ts'

export function Queues({ session }: { session: Session }) {
  const queues = usePolled<QueuesAnswer>('queues')
  return (
    <View title="Queues">
      <Loaded polled={queues} what="The queues">
        {({ queues }) =>
          queues.length === 0 ? (
            <Panel title="Queues">
              <Blank title="No queues">Pass the queues of this API to createAdmin.</Blank>
            </Panel>
          ) : (
            queues.map((queue) => <QueuePanel key={queue.name} queue={queue} session={session} />)
          )
        }
      </Loaded>
    </View>
  )
}

function QueuePanel({ queue, session }: { queue: QueueState; session: Session }) {
  const { name, isAway, depth, running, dead, oldestMs, inPerSecond, outPerSecond } = queue
  const rate = (value: number | undefined) => (value === undefined ? '–' : `${brief(value)}/s`)
  return (
    <Panel
      title={name}
      flush
      aside={isAway ? <Badge tone="deny">away</Badge> : <Badge tone="ok">answers</Badge>}
    >
      {isAway && (
        <div class="body">
          <Notice tone="near">
            <p>The broker of this queue does not answer.</p>
          </Notice>
        </div>
      )}
      <Facts
        facts={[
          ['Depth', plain(depth)],
          ['Running', plain(running)],
          ['Oldest', oldestMs ? duration(oldestMs) : '–'],
          ['In', rate(inPerSecond)],
          ['Out', rate(outPerSecond)],
          ['Dead letters', <span class={dead ? 'toned deny' : ''}>{plain(dead)}</span>],
        ]}
      />
      {dead !== undefined && dead > 0 && (
        <DeadLetters queue={name} total={dead} mayAct={session.may.includes('keys')} />
      )}
    </Panel>
  )
}

type Job = Dead['jobs'][number]

const actions = [
  ['retry', 'Retry'],
  ['delete', 'Delete'],
] as const

/** One page of dead letters. Longer pages are polled less often. */
const pageSize = 50

function DeadLetters({ queue, total, mayAct }: { queue: string; total: number; mayAct: boolean }) {
  const [offset, setOffset] = useState(0)
  const [open, setOpen] = useState<Acting>()
  const path = `queues/${encodeURIComponent(queue)}/dead`
  const dead = usePolled<Dead>(
    `${path}?${new URLSearchParams({ offset: String(offset), limit: String(pageSize) })}`,
  )
  const now = useNow()
  const jobs = dead.data?.jobs ?? []
  const ids = jobs.map(({ id }) => id)
  return (
    <>
      <div class="bar row">
        <h3 class="grow">Dead letters, newest first</h3>
        {mayAct &&
          jobs.length > 0 &&
          actions.map(([action, verb]) => (
            <Button key={action} little onClick={() => setOpen({ action, ids })}>
              {verb} all {count(jobs.length)}
            </Button>
          ))}
        {offset > 0 && (
          <Button little onClick={() => setOffset(offset - pageSize)}>
            Newer
          </Button>
        )}
        {offset + pageSize < total && (
          <Button little onClick={() => setOffset(offset + pageSize)}>
            Older
          </Button>
        )}
      </div>
      <Loaded polled={dead} what="The dead letters">
        {({ jobs }) => (
          <Table
            label={`Dead letters of ${queue}`}
            items={jobs}
            idOf={({ id }) => id}
            columns={jobColumns(now, mayAct && setOpen)}
          />
        )}
      </Loaded>
      {open && <DeadDialog {...open} path={path} onClose={() => setOpen(undefined)} />}
    </>
  )
}

interface Acting {
  readonly action: 'retry' | 'delete'
  readonly ids: readonly string[]
}

function jobColumns(
  now: number,
  onAct: ((acting: Acting) => void) | false,
): readonly Column<Job>[] {
  return [
    { title: 'Job', cell: ({ id }) => <span class="mono">{id.slice(0, 8)}</span> },
    { title: 'Error', look: 'cut', cell: ({ error }) => <span title={error}>{error ?? '–'}</span> },
    { title: 'Runs', look: 'num wide', cell: ({ attempts }) => count(attempts) },
    {
      title: 'Owner',
      look: 'wide',
      cell: ({ identity }) => <span class="mono">{identity.slice(0, 10)}</span>,
    },
    {
      title: 'Arrived',
      look: 'num',
      cell: ({ enqueuedAt }) => <span title={moment(enqueuedAt)}>{distance(enqueuedAt, now)}</span>,
    },
    {
      title: '',
      look: 'act',
      cell: ({ id }) =>
        onAct &&
        actions.map(([action, verb]) => (
          <Button
            key={action}
            look="plain"
            little
            label={`${verb} job ${id}`}
            onClick={() => onAct({ action, ids: [id] })}
          >
            {verb}
          </Button>
        )),
    },
  ]
}

type DeadDialogProps = Acting & { readonly path: string; readonly onClose: () => void }

function DeadDialog({ action, ids, path, onClose }: DeadDialogProps) {
  const jobs = ids.length === 1 ? 'one dead letter' : `${count(ids.length)} dead letters`
  const isRetry = action === 'retry'
  const label = isRetry ? 'Retry' : 'Delete'
  return (
    <ActionDialog
      title={`${label} ${jobs}`}
      onClose={onClose}
      actions={[
        {
          label,
          look: isRetry ? 'main' : 'deny',
          run: async (reason) => {
            const body = { ids, reason }
            const request = { method: 'POST', body } as const
            const { done, missing } = await call<DeadAction>(`${path}/${action}`, request)
            const gone = missing.length > 0 ? ` ${count(missing.length)} were already gone.` : ''
            tell(`${count(done.length)} ${isRetry ? 'run again' : 'are deleted'}.${gone}`)
          },
        },
      ]}
    >
      <p>
        {isRetry
          ? 'The jobs are run again, from their first attempt on.'
          : 'The jobs are deleted permanently.'}
      </p>
    </ActionDialog>
  )
}
