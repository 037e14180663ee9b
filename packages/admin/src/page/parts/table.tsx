import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface Column<T> {
  readonly title: string
  readonly cell: (item: T) => ComponentChildren
  /** `num`: to the right; `cut`: takes the room that is left; `wide`: left out on narrow screens. */
  readonly look?: 'num' | 'cut' | 'wide' | 'num wide' | 'cut wide'
}

interface TableProps<T> {
  readonly label: string
  readonly items: readonly T[]
  readonly idOf: (item: T) => string
  readonly columns: readonly Column<T>[]
}

/** The height of a row in CSS (`--row`), and its line. */
const rowPx = 38
/** Lists up to this length are drawn in full. */
const shortList = 60
/** Rows drawn above and below those that are seen. */
const spare = 12

/** A table that draws the rows that are seen, and no others: a list may have thousands. */
export function Table<T>({ label, items, idOf, columns }: TableProps<T>) {
  const box = useRef<HTMLDivElement>(null)
  const isLong = items.length > shortList
  const [view, setView] = useState({ top: 0, height: 760 })
  useLayoutEffect(() => {
    const element = box.current
    if (!element || !isLong) return
    const update = () => setView({ top: element.scrollTop, height: element.clientHeight })
    update()
    element.addEventListener('scroll', update, { passive: true })
    return () => element.removeEventListener('scroll', update)
  }, [isLong])
  const first = isLong ? Math.max(0, Math.floor(view.top / rowPx) - spare) : 0
  const last = isLong
    ? Math.min(items.length, Math.ceil((view.top + view.height) / rowPx) + spare)
    : items.length
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <div ref={box} class={isLong ? 'scroll tall' : 'scroll'} tabIndex={0} role="region" aria-label={label}>
      <table class="table" aria-rowcount={items.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ title, look }) => (
              <th key={title} scope="col" class={look}>
                {title === '' ? <span class="unseen">Actions</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap rows={first} columns={columns.length} />
          {items.slice(first, last).map((item, index) => (
            <tr key={idOf(item)} aria-rowindex={first + index + 2}>
              {columns.map(({ title, look, cell }, place) =>
                place === 0 ? (
                  <th key={title} scope="row" class={look}>
                    {cell(item)}
                  </th>
                ) : (
                  <td key={title} class={look}>
                    {cell(item)}
                  </td>
                ),
              )}
            </tr>
          ))}
          <Gap rows={items.length - last} columns={columns.length} />
        </tbody>
      </table>
    </div>
  )
}

/** Stands for the rows that are not drawn. */
function Gap({ rows, columns }: { rows: number; columns: number }) {
  if (rows === 0) return null
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * rowPx}px` }} />
    </tr>
  )
}
