import type { ComponentChildren } from 'preact'
import { EndedError, OfflineError, wordsOf } from '../api/client.ts'
import type { Polled } from '../api/poll.ts'
import { Icon } from './icons.tsx'
import { tell } from './toasts.tsx'

export type Tone = 'ok' | 'deny' | 'near' | 'shadow' | 'accent' | 'none'

interface ButtonProps {
  readonly children: ComponentChildren
  readonly onClick: (() => void) | undefined
  readonly look?: 'main' | 'deny' | 'shadow' | 'plain' | undefined
  /** Accessible name, if its text is not enough. */
  readonly label?: string
  readonly little?: boolean
  readonly disabled?: boolean
  readonly type?: 'submit' | undefined
  readonly title?: string | undefined
}

export function Button({ look, label, little, type, ...rest }: ButtonProps) {
  const classes = `button ${look ?? ''} ${little ? 'little' : ''}`
  return <button type={type ?? 'button'} class={classes} aria-label={label} {...rest} />
}

interface ViewProps {
  readonly title: string
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
}

export function View({ title, aside, children }: ViewProps) {
  return (
    <>
      <div class="head">
        <h1>{title}</h1>
        {aside}
      </div>
      <div class="stack">{children}</div>
    </>
  )
}

interface PanelProps {
  readonly title: string
  readonly aside?: ComponentChildren
  /** Number of columns, out of twelve. @default all */
  readonly of?: 5 | 7 | 12
  /** A table fills its panel from edge to edge. */
  readonly flush?: boolean
  readonly children: ComponentChildren
}

export function Panel({ title, aside, of = 12, flush = false, children }: PanelProps) {
  return (
    <section class="panel" style={{ '--of': of }} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {aside && <div class="row">{aside}</div>}
      </header>
      {flush ? children : <div class="body">{children}</div>}
    </section>
  )
}

export function Badge({ tone = 'none', children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

interface FactsProps {
  readonly facts: readonly (readonly [term: string, value: ComponentChildren] | false)[]
}

export function Facts({ facts }: FactsProps) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

interface NameProps {
  /** Omitted if the address would have to contain the identity. */
  readonly href?: string
  readonly text: string | undefined
  readonly digest?: string
}

/** Number of last characters of a name that stay visible when it is cut. */
const tail = 8

/** Names an identity, and links to it. A long name is cut in the middle, but copied in full. */
export function Name({ href, text, digest = '' }: NameProps) {
  const whole = text ?? digest
  const shown = [<span key="head">{whole.slice(0, -tail)}</span>, whole.slice(-tail)]
  return (
    <span class={text === undefined ? 'name mono' : 'name'}>
      {href === undefined ? (
        <span title={whole}>{shown}</span>
      ) : (
        <a href={href} title={whole} aria-label={whole}>
          {shown}
        </a>
      )}
      <Copy text={whole} />
    </span>
  )
}

/** Copies a string. Browsers forbid this on pages without TLS. */
export function Copy({ text }: { text: string }) {
  if (!isSecureContext) return null
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    tell(`Copied ${text}.`)
  }
  return (
    <button type="button" class="copy" aria-label={`Copy ${text}`} onClick={() => void copy()}>
      <Icon name="copy" />
    </button>
  )
}

interface NoticeProps {
  readonly tone: Tone
  readonly children: ComponentChildren
  readonly action?: ComponentChildren
}

export function Notice({ tone, children, action }: NoticeProps) {
  return (
    <div class={`notice ${tone}`} role="status">
      <Icon name="alert" size={18} />
      <div class="grow">{children}</div>
      {action}
    </div>
  )
}

/** Shows an error; nothing for `undefined`. */
export function Fault({ error }: { error: unknown }) {
  if (error === undefined) return null
  return (
    <div role="alert">
      <Notice tone="deny">
        <p>{wordsOf(error)}</p>
      </Notice>
    </div>
  )
}

/** Replaces an empty list, and says how it will be filled. */
export function Blank({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="blank">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  )
}

interface LoadedProps<T> {
  readonly polled: Polled<T>
  readonly what: string
  readonly children: (data: T) => ComponentChildren
}

/** Shows loaded data; until then, that it is loading or why it cannot be loaded. */
export function Loaded<T>({ polled: { data, error }, what, children }: LoadedProps<T>) {
  if (data !== undefined) {
    // The page header shows both, once.
    const isTold = error instanceof OfflineError || error instanceof EndedError
    return (
      <>
        {error !== undefined && !isTold && (
          <Notice tone="near">
            <p>
              {what} cannot be refreshed: {wordsOf(error)}. The page shows the last known state.
            </p>
          </Notice>
        )}
        {children(data)}
      </>
    )
  }
  if (error === undefined) return <Blank title={`Loading ${what.toLowerCase()} …`} />
  return <Blank title={`${what} cannot be shown`}>{wordsOf(error)}</Blank>
}

interface MeterProps {
  /** The share of 1 that is full. */
  readonly share: number
  /** Omitted if the number is shown next to it. */
  readonly label?: string
}

/** A bar that is full if the share is 1. */
export function Meter({ share, label }: MeterProps) {
  const width = Math.max(0, Math.min(1, share)) * 100
  const spoken = {
    role: 'meter',
    'aria-label': label,
    'aria-valuemin': 0,
    'aria-valuemax': 100,
    'aria-valuenow': Math.round(width),
  } as const
  return (
    <div class="meter" {...(label === undefined ? { 'aria-hidden': true } : spoken)}>
      <div class={`fill ${toneOf(share)}`} style={{ width: `${width}%` }} />
    </div>
  )
}

/** A limit is near from 90 percent on, as near misses are, and reached at 100. */
function toneOf(share: number): Tone {
  if (share >= 1) return 'deny'
  return share > 0.9 ? 'near' : 'accent'
}
