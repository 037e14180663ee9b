import { useEffect, useReducer } from 'preact/hooks'
import { ApiError, ask, EndedError, OfflineError } from './client.ts'

/** The newest answer from one API address, and its state. */
export interface Polled<T> {
  readonly data: T | undefined
  readonly error: unknown
  /** Time of the newest answer, in ms since 1970. */
  readonly at: number | undefined
  readonly etag: string | undefined
}

export type Link = 'waiting' | 'online' | 'offline' | EndedError

const pollMs = 2_000

const nothing: Polled<never> = { data: undefined, error: undefined, at: undefined, etag: undefined }

/** One address that is polled, however many parts of the page show it. */
class Poll {
  readonly #path: string
  readonly #everyMs: number
  readonly #watchers = new Set<() => void>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #asking = false
  #again = false
  state: Polled<unknown> = nothing

  constructor(path: string, everyMs: number) {
    this.#path = path
    this.#everyMs = everyMs
  }

  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher)
    if (this.#watchers.size === 1) void this.refresh()
    return () => {
      this.#watchers.delete(watcher)
      if (this.#watchers.size === 0) clearTimeout(this.#timer)
    }
  }

  async refresh(): Promise<void> {
    clearTimeout(this.#timer)
    if (document.hidden || this.#watchers.size === 0) return
    if (link instanceof EndedError) return this.#fail(link)
    this.#again = this.#asking
    if (this.#asking) return
    this.#asking = true
    try {
      const { body, etag } = await ask<unknown>(this.#path, { etag: this.state.etag })
      const data = body === undefined ? this.state.data : body
      this.state = { data, etag, error: undefined, at: Date.now() }
      setLink('online')
      this.#tell()
    } catch (error) {
      const isEnd = error instanceof ApiError && [401, 403, 429].includes(error.status)
      if (isEnd) setLink(new EndedError(error))
      else setLink(error instanceof OfflineError ? 'offline' : 'online')
      this.#fail(isEnd ? link : error)
    }
    this.#asking = false
    if (this.#again) return this.refresh()
    clearTimeout(this.#timer)
    if (this.#watchers.size > 0) {
      this.#timer = setTimeout(() => void this.refresh(), this.#everyMs)
    }
  }

  #fail(error: unknown): void {
    this.state = { ...this.state, error }
    this.#tell()
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher()
  }
}

const polls = new Map<string, Poll>()
const linkWatchers = new Set<() => void>()
let link: Link = 'waiting'

// A hidden tab does not poll; a tab that becomes visible polls at once.
document.addEventListener('visibilitychange', refreshAll)
window.addEventListener('online', refreshAll)

function setLink(next: Link): void {
  // Only reloading the page starts a new session.
  if (next === link || link instanceof EndedError) return
  link = next
  for (const watcher of linkWatchers) watcher()
}

/** Refreshes everything shown: after a change, or when the tab becomes visible again. */
export function refreshAll(): void {
  for (const poll of polls.values()) void poll.refresh()
}

/** Shows the answer from an API address, and keeps it fresh. */
export function usePolled<T>(path: string, everyMs: number = pollMs): Polled<T> {
  const poll = pollOf(path, everyMs)
  useUpdates((update) => poll.watch(update), poll)
  const { state } = poll
  return { ...state, data: decoded<T>(state.data) }
}

export function useLink(): Link {
  useUpdates((update) => {
    linkWatchers.add(update)
    return () => void linkWatchers.delete(update)
  })
  return link
}

/** Renders a part of the page at each update. @param watch returns a function that stops it */
export function useUpdates(watch: (update: () => void) => () => void, of?: unknown): void {
  const [, render] = useReducer((turn: number) => turn + 1, 0)
  useEffect(() => watch(() => render(undefined)), [of])
}

function pollOf(path: string, everyMs: number): Poll {
  const known = polls.get(path)
  if (known) return known
  const made = new Poll(path, everyMs)
  polls.set(path, made)
  return made
}

/** Decodes API answers: tests check their shape against the OpenAPI file. */
function decoded<T>(data: unknown): T | undefined {
  return data as T | undefined
}
