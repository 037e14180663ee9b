import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { EndedError, wordsOf } from './api/client.ts'
import { useLink, usePolled } from './api/poll.ts'
import type { Session } from './api/types.ts'
import { linkTo, useNow, usePlace, type View, views } from './parts/app-state.ts'
import { Button, Loaded, Notice } from './parts/basics.tsx'
import { Icon } from './parts/icons.tsx'
import { StateNotices, useIsAway } from './parts/state-notices.tsx'
import { Toasts } from './parts/toasts.tsx'
import { Audit } from './views/audit.tsx'
import { Keys } from './views/keys.tsx'
import { Overview } from './views/overview.tsx'
import { Policies } from './views/policies.tsx'
import { Queues } from './views/queues.tsx'
import { Top } from './views/top.tsx'
import { distance } from './words/format.ts'

interface ViewProps {
  readonly session: Session
  readonly detail: string
}

const parts: Readonly<
  Record<View, readonly [title: string, Part: (props: ViewProps) => ComponentChildren]>
> = {
  overview: ['Overview', Overview],
  policies: ['Policies', Policies],
  keys: ['Keys', Keys],
  top: ['Top', Top],
  queues: ['Queues', Queues],
  audit: ['Audit', Audit],
}

/** A user's roles rarely change. */
const sessionMs = 30_000

export function App() {
  const place = usePlace()
  const [title, Part] = parts[place.view]
  const session = usePolled<Session>('session', sessionMs)
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    document.title = `${title} · Sluice`
    // The focus moves to the new view, as it would to a new page.
    if (!isFirst.current) main.current?.focus({ preventScroll: true })
    window.scrollTo(0, 0)
    isFirst.current = false
  }, [place.view])
  return (
    <div class="frame">
      <button type="button" class="skip button" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <Side view={place.view} session={session.data} />
      <main class="content" ref={main} tabIndex={-1}>
        <LinkNotice at={session.at} />
        <StateNotices />
        <Loaded polled={session} what="The page">
          {(session) => <Part key={place.detail} detail={place.detail} session={session} />}
        </Loaded>
      </main>
      <Toasts />
    </div>
  )
}

function Side({ view, session }: { view: View; session: Session | undefined }) {
  return (
    <header class="side">
      <span class="brand">
        <Icon name="sluice" size={20} /> Sluice
      </span>
      <nav class="nav" aria-label="Views">
        {views.map((each) => (
          <a key={each} href={linkTo(each)} aria-current={each === view ? 'page' : undefined}>
            <Icon name={each} />
            {parts[each][0]}
          </a>
        ))}
      </nav>
      <div class="foot">
        {session && (
          <div class="who">
            <div>{session.actor}</div>
            <div class="muted">may {session.may.join(', ') || 'nothing'}</div>
          </div>
        )}
        <LinkState />
      </div>
    </header>
  )
}

const linkWords = {
  waiting: ['none', 'Connecting'],
  online: ['ok', 'Live'],
  offline: ['deny', 'Offline'],
  away: ['near', 'Store unavailable'],
} as const

function LinkState() {
  const [link, isAway] = [useLink(), useIsAway()]
  const [tone, words] =
    link instanceof EndedError
      ? ['deny', 'Stopped']
      : linkWords[link === 'online' && isAway ? 'away' : link]
  return (
    <div class="row">
      <span class={`pip ${tone}`} /> {words}
    </div>
  )
}

/** Says that the data is old, how old, and what helps. */
function LinkNotice({ at }: { at: number | undefined }) {
  const link = useLink()
  const now = useNow()
  if (link === 'online' || link === 'waiting') return null
  const age = at === undefined ? '' : ` The data is from ${distance(at, now)}.`
  const isOffline = link === 'offline'
  return (
    <div class="stack">
      <Notice
        tone="deny"
        action={
          !isOffline && (
            <Button look="main" onClick={() => location.reload()}>
              Sign in again
            </Button>
          )
        }
      >
        <p>
          <strong>{isOffline ? 'Offline' : link.title}.</strong>{' '}
          {isOffline
            ? 'The server does not answer. The page tries again every two seconds.'
            : `${wordsOf(link)} The page has stopped asking.`}
          {age}
        </p>
      </Notice>
    </div>
  )
}
