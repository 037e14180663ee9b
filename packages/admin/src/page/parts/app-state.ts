import { useEffect, useState } from 'preact/hooks'
import { useUpdates } from '../api/poll.ts'

export const views = ['overview', 'policies', 'keys', 'top', 'queues', 'audit'] as const
export type View = (typeof views)[number]

/** A place in the page: `#/keys/tenant%20acme`. */
export interface Place {
  readonly view: View
  /** The rest of the hash: the content of the view. */
  readonly detail: string
}

/** Parses the URL hash; an unknown view is the overview. */
function placeOf(hash: string): Place {
  const [, name = '', detail = ''] = hash.split('/')
  const view = views.find((each) => each === name) ?? 'overview'
  return { view, detail: decoded(detail) }
}

export function linkTo(view: View, detail = ''): string {
  return detail === '' ? `#/${view}` : `#/${view}/${encodeURIComponent(detail)}`
}

export function usePlace(): Place {
  useUpdates((update) => {
    window.addEventListener('hashchange', update)
    return () => window.removeEventListener('hashchange', update)
  })
  return placeOf(location.hash)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The time, every second, for strings such as `3 s ago`. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  return now
}
