import { useEffect, useState } from 'preact/hooks'
import { call, wordsOf } from '../../api/client.ts'
import { usePolled } from '../../api/poll.ts'
import type { Policies, Unlock } from '../../api/types.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button, Panel } from '../../parts/basics.tsx'
import { Select } from '../../parts/forms.tsx'
import { tell } from '../../parts/toasts.tsx'
import { count } from '../../words/format.ts'

/** Unlocks everybody under one policy, for example after a wrong limit. */
export function UnlockEverybody() {
  const { data } = usePolled<Policies>('policies')
  const names = data?.policies.map(({ name }) => name) ?? []
  const [chosen, setChosen] = useState<string>()
  const [isOpen, setOpen] = useState(false)
  const policy = chosen ?? names[0] ?? ''
  return (
    <Panel title="Unlock everybody under one policy">
      <div class="row ends">
        <div class="grow">
          <Select label="Policy" value={policy} options={names} onValue={setChosen} />
        </div>
        {policy !== '' && (
          <Button look="deny" onClick={() => setOpen(true)}>
            Unlock everybody
          </Button>
        )}
      </div>
      {isOpen && <UnlockDialog policy={policy} onClose={() => setOpen(false)} />}
    </Panel>
  )
}

/** Continues from cursor to cursor; each step is bounded. */
async function unlock(policy: string, body: object): Promise<number> {
  let keys = 0
  let cursor: string | undefined
  do {
    const all: object = { policy, ...body, ...(cursor !== undefined && { cursor }) }
    const answer: Unlock = await call<Unlock>('keys/unlock', { method: 'POST', body: all })
    keys += answer.keys
    cursor = answer.cursor
  } while (cursor !== undefined)
  return keys
}

function UnlockDialog({ policy, onClose }: { policy: string; onClose: () => void }) {
  const [found, setFound] = useState<string>('Counting the keys …')
  useEffect(() => {
    unlock(policy, { reason: 'preview', dryRun: true }).then(
      (keys) => setFound(`${count(keys)} keys are counted under ${policy} now.`),
      (error: unknown) => setFound(wordsOf(error)),
    )
  }, [policy])
  return (
    <ActionDialog
      title={`Unlock everybody under ${policy}`}
      onClose={onClose}
      actions={[
        {
          label: 'Unlock everybody',
          look: 'deny',
          run: async (reason) => {
            const keys = await unlock(policy, { reason })
            tell(`${count(keys)} keys of ${policy} were reset.`)
          },
        },
      ]}
    >
      <p>All counts are reset, and everybody has the full limit again.</p>
      <p aria-live="polite">{found}</p>
    </ActionDialog>
  )
}
