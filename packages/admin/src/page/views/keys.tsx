import { useEffect, useRef, useState } from 'preact/hooks'
import { call, wordsOf } from '../api/client.ts'
import type { KeyPolicy, Lookup, Session } from '../api/types.ts'
import { linkTo } from '../app-state.ts'
import { count, duration, percent } from '../format.ts'
import { Badge, Blank, Meter, Notice, Panel } from '../parts/basics.tsx'
import { Field } from '../parts/forms.tsx'
import { type KeyActionName, KeyDialog } from './keys/key-dialogs.tsx'
import { keyOf, namedKeyOf } from './keys/typed-key.ts'
import { UnlockEverybody } from './keys/unlock-everybody.tsx'

/** An identity is kept while the page is open, and stands in no address: only a digest may. */
let lastTyped = ''

interface KeysProps {
  readonly session: Session
  /** The digest that a link leads to. */
  readonly detail: string
}

export function Keys({ session, detail }: KeysProps) {
  const [typed, setTyped] = useState(detail || lastTyped)
  const [sought, setSought] = useState(detail || lastTyped)
  const turn = useRef(0)
  const [found, setFound] = useState<{ lookup?: Lookup; error?: unknown; isAsking?: boolean }>({})
  const look = async (text: string) => {
    turn.current += 1
    const mine = turn.current
    lastTyped = text
    setSought(text)
    if (text === '') return setFound({})
    setFound((before) => ({ ...before, isAsking: true }))
    try {
      const lookup = await call<Lookup>('keys/lookup', {
        method: 'POST',
        body: { key: keyOf(text) },
      })
      if (mine === turn.current) setFound({ lookup })
    } catch (error) {
      if (mine === turn.current) setFound({ error })
    }
  }
  useEffect(() => {
    if (detail !== '') setTyped(detail)
    void look(detail || lastTyped)
  }, [detail])
  const mayUnlock = session.features.unlock && session.may.includes('policies')
  const unlock = mayUnlock && <UnlockEverybody />
  if (!session.may.includes('keys')) {
    return (
      <>
        <div class="head">
          <h1>Keys</h1>
        </div>
        <div class="stack">
          <Panel title="Keys">
            <Blank title="You may not look at keys">It needs the role “keys”.</Blank>
          </Panel>
          {unlock}
        </div>
      </>
    )
  }
  return (
    <>
      <div class="head">
        <h1>Keys</h1>
      </div>
      <div class="stack">
        <Panel title="Find an identity">
          <form
            class="search"
            onSubmit={(event) => {
              event.preventDefault()
              // The address must not go on naming another key than the one that is shown.
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
                placeholder={placeholderOf(session.keys)}
                hint={`A name and a value (${session.keys.join(', ') || 'ip'}), several with a comma between them, or a digest.`}
              />
            </div>
            <button type="submit" class="button main at-field">
              Look up
            </button>
          </form>
        </Panel>
        {found.error !== undefined && (
          <div role="alert">
            <Notice tone="deny">
              <p>{wordsOf(found.error)}</p>
            </Notice>
          </div>
        )}
        {found.isAsking && !found.lookup && <Blank title="Looking …" />}
        {found.lookup && (
          <Found
            lookup={found.lookup}
            typed={sought}
            session={session}
            onAgain={() => void look(sought)}
          />
        )}
        {unlock}
      </div>
    </>
  )
}

function placeholderOf(names: readonly string[]): string {
  const examples: Readonly<Record<string, string>> = {
    user: 'user ada',
    tenant: 'tenant acme',
    ip: 'ip 203.0.113.9',
  }
  const [name = 'ip'] = names
  return examples[name] ?? `${name} …`
}

interface FoundProps {
  readonly lookup: Lookup
  readonly typed: string
  readonly session: Session
  readonly onAgain: () => void
}

function Found({ lookup, typed, session, onAgain }: FoundProps) {
  const [action, setAction] = useState<KeyActionName>()
  const namedKey = namedKeyOf(typed, session.keys)
  const label = lookup.name ?? (namedKey ? typed : lookup.digest.slice(0, 10))
  const hasPenalty = lookup.policies.some(({ isPenalty }) => isPenalty)
  const verdicts = lookup.policies.filter(({ mode }) => mode === 'enforce').map((of) => of.allowed)
  const [tone, verdict] = verdicts.includes(false)
    ? (['deny', 'denied now'] as const)
    : verdicts.includes(undefined)
      ? (['near', 'depends on the request'] as const)
      : (['ok', 'allowed now'] as const)
  const buttons: readonly (readonly [KeyActionName, string, boolean])[] = [
    ['reset', 'Reset', true],
    ['refund', 'Refund', namedKey !== undefined && session.features.changes],
    ['limit', 'Temporary limit', namedKey !== undefined && session.features.changes],
    ['unblock', 'Unblock', hasPenalty],
    ['block', 'Block', hasPenalty],
  ]
  return (
    <Panel
      title={label}
      aside={
        <>
          <Badge tone={tone}>{verdict}</Badge>
          <button type="button" class="button little" onClick={onAgain}>
            Refresh
          </button>
        </>
      }
    >
      <div class="stack">
        <p class="muted small">
          Digest <span class="mono digest">{lookup.digest}</span>
          {!lookup.found && ' · no policy counts anything for it now'}
        </p>
        <ul class="key-states">
          {lookup.policies.map((policy) => (
            <State key={policy.policy} of={policy} />
          ))}
        </ul>
        <div class="row">
          {buttons
            .filter(([, , isThere]) => isThere)
            .map(([name, text]) => (
              <button
                key={name}
                type="button"
                class={name === 'block' ? 'button danger' : 'button'}
                onClick={() => setAction(name)}
              >
                {text}
              </button>
            ))}
        </div>
        {action && (
          <KeyDialog
            action={action}
            keyReference={keyOf(typed)}
            namedKey={namedKey}
            label={label}
            lookup={lookup}
            onDone={onAgain}
            onClose={() => setAction(undefined)}
          />
        )}
      </div>
    </Panel>
  )
}

/** The state of a key under one policy, as a bar. */
function State({ of }: { of: KeyPolicy }) {
  const { policy, isPenalty, mode, allowed, used, denied } = of
  // A bucket is full at what it holds; its limit is what comes back in a window.
  const limit = of.capacity ?? of.limit
  const isDenied = allowed === false
  const share = typeof limit === 'number' && limit > 0 ? (used ?? 0) / limit : isDenied ? 1 : 0
  return (
    <li>
      <div class="row apart">
        <span>
          <strong>{policy}</strong> {isPenalty && <Badge tone="near">penalty</Badge>}{' '}
          {mode === 'shadow' && <Badge tone="shadow">shadow</Badge>}{' '}
          {isDenied && <Badge tone="deny">{isPenalty ? 'blocked' : 'denied'}</Badge>}
        </span>
        <span>
          <b>{used === undefined ? '–' : count(used)}</b>
          <span class="muted">
            {' '}
            {limit !== undefined && `of ${typeof limit === 'number' ? count(limit) : limit} `}
            {isPenalty ? 'strikes' : 'units'}
          </span>
        </span>
      </div>
      {limit !== undefined && <Meter share={share} label={`${policy}: ${percent(share)} used`} />}
      <div class="row apart muted small">
        <span>{!isPenalty && denialWords(denied)}</span>
        <span>{stateWords(of)}</span>
      </div>
    </li>
  )
}

/** Says when the key was denied, as far as the busiest keys tell. */
function denialWords(denied: KeyPolicy['denied']): string {
  const spans = (['1m', '10m', '1h'] as const).filter((span) => denied[span] !== undefined)
  if (spans.length === 0) return 'no denials among the busiest keys'
  if (denied['1h'] === 0) return 'not denied within the last hour'
  return `denied ${spans.map((span) => `${count(denied[span] ?? 0)} in ${span}`).join(' · ')}`
}

function stateWords(of: KeyPolicy): string {
  const { isPenalty, allowed, used, retryAfterMs, resetMs, limit, refillMs } = of
  if (allowed === undefined) return 'the limit depends on the request'
  if (!allowed && retryAfterMs === undefined) return 'waiting cannot help'
  if (!allowed) return `allowed again in ${duration(retryAfterMs ?? 0)}`
  if (isPenalty) return 'not blocked'
  if (refillMs !== undefined) return `${limit} units come back in ${duration(refillMs)}`
  return used && resetMs ? `next units in ${duration(resetMs)}` : 'all units are left'
}
