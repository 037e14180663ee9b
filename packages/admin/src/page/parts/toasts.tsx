import { useUpdates } from '../api/poll.ts'

interface Toast {
  readonly id: number
  readonly text: string
}

const shownMs = 6_000
let toasts: readonly Toast[] = []
let next = 0
const watchers = new Set<() => void>()

function setToasts(now: readonly Toast[]): void {
  toasts = now
  for (const watcher of watchers) watcher()
}

/** Confirms actions in a corner of the page. */
export function tell(text: string): void {
  next += 1
  const id = next
  setToasts([...toasts, { id, text }].slice(-3))
  setTimeout(() => setToasts(toasts.filter((toast) => toast.id !== id)), shownMs)
}

export function Toasts() {
  useUpdates((update) => {
    watchers.add(update)
    return () => void watchers.delete(update)
  })
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  )
}
