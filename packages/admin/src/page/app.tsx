import { useEffect, useRef } from 'preact/hooks'
import { ApiError, wordsOf } from './api/client.ts'
import { useLink, usePolled } from './api/poll.ts'
import type { Live, Session } from './api/types.ts'
import { linkTo, themes, useNow, usePlace, useTheme, type View, views } from './app-state.ts'
import { distance } from './format.ts'
import { Blank, Notice } from './parts/basics.tsx'
import { Icon } from './parts/icons.tsx'
import { Toasts } from './parts/toasts.tsx'
import { Audit } from './views/audit.tsx'
import { Keys } from './views/keys.tsx'
import { Overview, useLiveWindow } from './views/overview.tsx'
import { Policies } from './views/policies.tsx'
import { Queues } from './views/queues.tsx'
import { Top } from './views/top.tsx'

const titles: Readonly<Record<View, string>> = {
  overview: 'Overview',
  policies: 'Policies',
  keys: 'Keys',
  top: 'Top',
  queues: 'Queues',
  audit: 'Audit',
}

/** The roles of somebody change seldom. */
const sessionMs = 30_000

export function App() {
  const place = usePlace()
  const session = usePolled<Session>('session', sessionMs)
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    document.title = `${titles[place.view]} · Sluice`
    // The focus follows to the new view, as it does to a new page.
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
        <Offline at={session.at} />
        <Refused error={session.error} hasSession={session.data !== undefined} />
        {session.data && <Body view={place.view} detail={place.detail} session={session.data} />}
      </main>
      <Toasts />
    </div>
  )
}

interface BodyProps {
  readonly view: View
  readonly detail: string
  readonly session: Session
}

function Body({ view, detail, session }: BodyProps) {
  // Asked for in every view, so that the lines of the overview have no gaps.
  const live = usePolled<Live>('live')
  const window = useLiveWindow(live)
  switch (view) {
    case 'policies':
      return <Policies session={session} />
    case 'keys':
      return <Keys session={session} detail={detail} />
    case 'top':
      return <Top session={session} />
    case 'queues':
      return <Queues session={session} />
    case 'audit':
      return <Audit />
    default:
      return <Overview session={session} live={live} window={window} />
  }
}

function Side({ view, session }: { view: View; session: Session | undefined }) {
  const [theme, setTheme] = useTheme()
  return (
    <header class="side">
      <span class="brand">
        <Icon name="sluice" size={20} /> Sluice
      </span>
      <nav class="nav" aria-label="Views">
        {views.map((each) => (
          <a key={each} href={linkTo(each)} aria-current={each === view ? 'page' : undefined}>
            <Icon name={each} />
            {titles[each]}
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
        <fieldset class="themes" aria-label="Theme">
          {themes.map((each) => (
            <button
              key={each}
              type="button"
              aria-label={`${each} theme`}
              title={`${each} theme`}
              aria-pressed={each === theme}
              onClick={() => setTheme(each)}
            >
              <Icon name={each} />
            </button>
          ))}
        </fieldset>
      </div>
    </header>
  )
}

const linkWords = {
  waiting: ['wait', 'Connecting'],
  online: ['', 'Live'],
  offline: ['bad', 'Offline'],
} as const

function LinkState() {
  const [tone, words] = linkWords[useLink()]
  return (
    <div class="link-state">
      <span class={`pip ${tone}`} /> {words}
    </div>
  )
}

/** Says that what is shown is old, and how old. */
function Offline({ at }: { at: number | undefined }) {
  const link = useLink()
  const now = useNow()
  if (link !== 'offline') return null
  return (
    <div class="stack above">
      <Notice tone="deny">
        <p>
          <strong>Offline.</strong> The server does not answer. The page tries again every two
          seconds
          {at === undefined ? '.' : `, and shows what it knew ${distance(at, now)}.`}
        </p>
      </Notice>
    </div>
  )
}

function Refused({ error, hasSession }: { error: unknown; hasSession: boolean }) {
  if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
    return <Blank title="You may not see this page">{wordsOf(error)}</Blank>
  }
  if (hasSession) return null
  return error === undefined ? (
    <Blank title="Loading …" />
  ) : (
    <Blank title="The page cannot be shown">{wordsOf(error)}</Blank>
  )
}
