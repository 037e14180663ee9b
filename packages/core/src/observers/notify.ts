import { warnOnce } from '../options/warn.ts'
import { isPromise } from '../runtime/maybe-promise.ts'

/** Tells one observer; an observer that throws must not change what a client is answered. */
export function notify<Event>(observer: ((event: Event) => void) | undefined, event: Event): void {
  if (!observer) return
  try {
    // An async function is one that returns nothing, to TypeScript.
    const result: unknown = observer(event)
    if (isPromise(result)) result.then(undefined, reportThrown)
  } catch (error) {
    reportThrown(error)
  }
}

function reportThrown(error: unknown): void {
  const reason = error instanceof Error ? error.message : 'no Error'
  warnOnce(`an observer threw: ${reason}`, 'observer')
}
