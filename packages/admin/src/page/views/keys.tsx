import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, call } from '../api/client.ts'
import { usePolled } from '../api/poll.ts'
import type { Audit, AuditRecord, Difference, Lookup, Policies, Session } from '../api/types.ts'
import { linkTo, useNow } from '../parts/app-state.ts'
import { AuditTable, auditMs, concerns, newestOf } from '../parts/audit-table.tsx'
import { Blank, Button, Copy, Fault, Panel, View } from '../parts/basics.tsx'
import { Field } from '../parts/forms.tsx'
import { changeWords, nameOf } from '../words/change-words.ts'
import { clockTime, distance, endText, moment } from '../words/format.ts'
import { keyText, limitText, windowText } from '../words/policy-values.ts'
import { ActDialog, type KeyActionName, limitsOf, RaiseDialog } from './keys/key-dialogs.tsx'
import { KeyStates } from './keys/key-states.tsx'
import { UnlockEverybody } from './keys/unlock-everybody.tsx'
import { byCause, denialsIn, verdictOn } from './keys/verdict.ts'

/** The answer to a look-up, and the time (ms) since which nothing newer is known. */
interface Sought {
  readonly lookup?: Lookup | undefined
  readonly at?: number | undefined
  readonly error?: unknown
  readonly isAsking?: boolean
}

/** Keeps the last known states while the store is unavailable. Denials are still counted. */
function withKnown(now: Lookup, { lookup, at }: Sought): Sought {
  if (!now.isAway) return { lookup: now, at: Date.now() }
  if (lookup?.digest !== now.digest) return { lookup: now }
  const known = new Map(lookup.policies.map((each) => [each.policy, each]))
  const policies = now.policies.map((each) => ({ ...known.get(each.policy), ...each }))
  return { lookup: { ...now, policies }, at }
}

/** An identity is kept while the page is open, but never in the URL: only a digest may be. */
let lastTyped = ''
let known: Sought = {}

export function Keys({ session, detail }: { session: Session; detail: string }) {
  const [typed, setTyped] = useState(detail || lastTyped)
  const turn = useRef(0)
  const [found, setFound] = useState<Sought>({})
  const policies = usePolled<Policies>('policies')
  const look = async (text: string, isAgain = false) => {
    turn.current += 1
    const mine = turn.current
    lastTyped = text
    if (text === '') return setFound({})
    setFound((before) => ({ ...before, isAsking: true }))
    try {
      const lookup = await call<Lookup>('keys/lookup', { method: 'POST', body: { key: text } })
      if (mine !== turn.current) return
      known = withKnown(lookup, known)
      setFound(known)
    } catch (error) {
      // The last answer stays on the page while the server or its store does not answer.
      const keeps = isAgain && !(error instanceof ApiError && error.status < 500)
      if (mine === turn.current)
        setFound(({ lookup, at }) => ({ ...(keeps && { lookup, at }), error }))
    }
  }
  useEffect(() => {
    if (!found.lookup) return
    const timer = setInterval(() => document.hidden || void look(lastTyped, true), auditMs)
    return () => clearInterval(timer)
  }, [found.lookup === undefined])
  useEffect(() => void look(detail || lastTyped), [])
  const mayUnlock = session.features.unlock && session.may.includes('policies')
  const unlock = mayUnlock && <UnlockEverybody />
  if (!session.may.includes('keys')) {
    return (
      <View title="Keys">
        <Blank title="You may not view keys">This requires the role “keys”.</Blank>
        {unlock}
      </View>
    )
  }
  return (
    <View title="Keys">
      <Panel title="Find an identity">
        <form
          class="row ends"
          onSubmit={(event) => {
            event.preventDefault()
            // The URL must not name a different key from the one shown.
            if (detail !== '' && typed.trim() !== detail)
              history.replaceState(null, '', linkTo('keys'))
            void look(typed.trim())
          }}
        >
          <div class="grow">
            <Field
              label="Key"
              value={typed}
              onValue={setTyped}
              focus
              placeholder={`${session.keys[0] ?? 'ip'} …`}
            />
          </div>
          <button type="submit" class="button main">
            Look up
          </button>
        </form>
        <p class="muted small">
          A value, a name and a value ({session.keys.join(', ') || 'ip'}), several with a comma
          between them, or a digest.
        </p>
      </Panel>
      <Fault error={found.error} />
      {found.isAsking && !found.lookup && <Blank title="Looking …" />}
      {found.lookup && (
        <Found
          lookup={found.lookup}
          oldAt={found.lookup.isAway || found.error !== undefined ? found.at : undefined}
          policies={policies.data}
          session={session}
          onAgain={() => void look(lastTyped)}
        />
      )}
      {unlock}
    </View>
  )
}

interface FoundProps {
  readonly lookup: Lookup
  /** Time (ms) at which its states were read, if not now. */
  readonly oldAt: number | undefined
  readonly policies: Policies | undefined
  readonly session: Session
  readonly onAgain: () => void
}

function Found({ lookup, oldAt, policies, session, onAgain }: FoundProps) {
  const [action, setAction] = useState<KeyActionName>()
  const { key, digest } = lookup
  const label = lookup.name ?? (key && nameOf(key)) ?? digest.slice(0, 10)
  const penalties = lookup.policies.filter(({ isPenalty }) => isPenalty)
  const mayRaise = key !== undefined && session.features.changes
  const { tone, words } = verdictOn(lookup)
  const { data } = usePolled<Audit>('audit?most=1000', auditMs)
  const records = newestOf(data?.records ?? [])
  const windowOf = (name: string) =>
    windowText(policies?.policies.find((each) => each.name === name)?.window)
  const own = (policies?.overrides ?? [])
    .filter((each) => JSON.stringify(each.key) === JSON.stringify(key))
    .map(({ policy, limit, mode, until }) => {
      const end = until === undefined ? '' : ` until ${endText(Date.parse(until))}`
      return `${policy} ${limitText(limit ?? mode)}${windowOf(policy)}${end}`
    })
  const buttons: readonly (readonly [KeyActionName, string, boolean])[] = [
    ['raise', 'Raise the limit', mayRaise],
    ['reset', 'Reset its count', true],
    ['unblock', 'Unblock', penalties.some(({ allowed }) => allowed === false)],
    ['block', 'Block', penalties.length > 0],
  ]
  const onClose = () => setAction(undefined)
  const dialog = { label, lookup, windowOf, onDone: onAgain, onClose }
  return (
    <>
      <Panel title={label}>
        <div class="stack">
          <p class={`verdict toned ${tone}`}>{words}</p>
          {oldAt !== undefined && (
            <p class="toned near">
              Last known at {clockTime(oldAt)}: the store does not answer now.
            </p>
          )}
          <LastChange lookup={lookup} records={records} />
          {own.length > 0 && <p>It has its own limit: {own.join(', ')}.</p>}
          <div class="row">
            {buttons
              .filter(([, , isThere]) => isThere)
              .map(([name, text]) => (
                <Button
                  key={name}
                  look={name === 'block' ? 'deny' : undefined}
                  onClick={() => setAction(name)}
                >
                  {text}
                </Button>
              ))}
            {!mayRaise && (
              <span class="muted small">
                {key
                  ? 'Limits can be raised if the policies have a store.'
                  : 'A digest does not identify whose limit to raise: look up the key itself.'}
              </span>
            )}
          </div>
          <KeyStates policies={byCause(lookup.policies)} windowOf={windowOf} />
          <Others lookup={lookup} policies={policies} />
          <p class="muted small">
            Digest <span class="mono digest">{digest}</span> <Copy text={digest} />
            {!lookup.found && !lookup.isAway && ' · no policy in the file counts anything for it'}
          </p>
        </div>
        {action === 'raise' && <RaiseDialog {...dialog} />}
        {action && action !== 'raise' && <ActDialog {...dialog} action={action} />}
      </Panel>
      <KeyTrail lookup={lookup} records={records} />
    </>
  )
}

interface TrailProps {
  readonly lookup: Lookup
  readonly records: readonly AuditRecord[]
}

/** Says who changed the denying policy, and why: it may protect something. */
function LastChange({ lookup, records }: TrailProps) {
  const now = useNow()
  const { denialsOf } = denialsIn(lookup.policies)
  const first = limitsOf(lookup).find((of) => of.allowed === false || denialsOf(of) > 0)
  const isOf = ({ path }: Difference) => path.startsWith(`policies.${first?.policy}.`)
  const last = records.find(({ changes = [] }) => changes.some(isOf))
  if (!last) return null
  return (
    <p>
      {last.actor}, <span title={moment(last.at)}>{distance(last.at, now)}</span>:{' '}
      <a href={linkTo('audit', last.target?.version)}>
        {last.changes?.filter(isOf).flatMap(changeWords).join(', ')}
      </a>{' '}
      ({last.reason})
    </p>
  )
}

function KeyTrail({ lookup, records }: TrailProps) {
  const own = records.filter((record) => concerns(record, lookup)).slice(0, 5)
  if (own.length === 0) return null
  return (
    <Panel title="Actions on it" flush aside={<a href={linkTo('audit')}>All actions</a>}>
      <AuditTable label="Actions on the key" records={own} />
    </Panel>
  )
}

/** Names the policies that count another key of the same request. */
function Others({ lookup, policies }: { lookup: Lookup; policies: Policies | undefined }) {
  const here = new Set(lookup.policies.map(({ policy }) => policy))
  const others = (policies?.policies ?? []).filter(({ name }) => !here.has(name))
  if (others.length === 0) return null
  return (
    <p class="small">
      Requests are counted by other keys too, each of which may refuse them:{' '}
      {others.slice(0, 8).map(({ name, key }, place) => (
        <span key={name}>
          {place > 0 && ', '}
          <a href={linkTo('top', name)}>{name}</a> by {keyText(key)}
        </span>
      ))}
      {others.length > 8 && ` and ${others.length - 8} more`}. Look those keys up as well.
    </p>
  )
}
