import { useEffect, useState } from 'preact/hooks'

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

/** Says in the corner what was done. */
export function tell(text: string): void {
  next += 1
  const id = next
  setToasts([...toasts, { id, text }].slice(-3))
  setTimeout(() => setToasts(toasts.filter((toast) => toast.id !== id)), shownMs)
}

export function Toasts() {
  const [shown, setShown] = useState(toasts)
  useEffect(() => {
    const watcher = () => setShown(toasts)
    watchers.add(watcher)
    return () => void watchers.delete(watcher)
  }, [])
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  )
}
