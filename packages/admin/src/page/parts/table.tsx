import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface Column<T> {
  readonly title: string
  readonly cell: (item: T) => ComponentChildren
  /**
   * `num`: to the right. `act`: to the right, and always in sight. `cut`: takes the room that is
   * left. `wide`: not on narrow screens. `roomy`: on broad ones alone. `slim-cut`: cut there.
   */
  readonly look?: 'num' | 'act' | 'cut' | 'wide' | 'roomy' | 'num wide' | 'cut wide' | 'slim-cut'
}

interface TableProps<T> {
  readonly label: string
  readonly items: readonly T[]
  readonly idOf: (item: T) => string
  readonly columns: readonly Column<T>[]
  /** Stands in the place of a table without rows. */
  readonly blank?: ComponentChildren
}

/** The height of a row in CSS (`--row`), and its line. */
const rowPx = 38
/** Lists up to this length are drawn in full. */
const shortList = 60
/** Rows drawn above and below those that are seen. */
const spare = 12

/** A table that draws the rows that are seen, and no others: a list may have thousands. */
export function Table<T>({ label, items, idOf, columns, blank }: TableProps<T>) {
  const box = useRef<HTMLElement>(null)
  const isLong = items.length > shortList
  const [view, setView] = useState({ top: 0, height: 760 })
  const [doesScroll, setScrolls] = useState(false)
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const update = () => {
      const { scrollTop, clientHeight, scrollHeight, clientWidth, scrollWidth } = element
      if (isLong) setView({ top: scrollTop, height: clientHeight })
      setScrolls(scrollHeight > clientHeight || scrollWidth > clientWidth)
    }
    const resize = new ResizeObserver(update)
    resize.observe(element)
    element.addEventListener('scroll', update, { passive: true })
    return () => {
      resize.disconnect()
      element.removeEventListener('scroll', update)
    }
  }, [isLong, items.length === 0])
  if (items.length === 0 && blank !== undefined) return <>{blank}</>
  const first = isLong ? Math.max(0, Math.floor(view.top / rowPx) - spare) : 0
  const last = isLong
    ? Math.min(items.length, Math.ceil((view.top + view.height) / rowPx) + spare)
    : items.length
  return (
    <section
      ref={box}
      class={isLong ? 'scroll tall' : 'scroll'}
      // The keyboard must reach it to scroll it.
      tabIndex={doesScroll ? 0 : undefined}
      aria-label={doesScroll ? `${label}: rows` : undefined}
    >
      <table class="table" aria-label={label} aria-rowcount={items.length + 1}>
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
    </section>
  )
}

/** Stands for the rows that are not drawn. */
function Gap({ rows, columns }: { rows: number; columns: number }) {
  if (rows === 0) return null
  return (
    <tr class="gap">
      <td colSpan={columns} style={{ height: `${rows * rowPx}px` }} />
    </tr>
  )
}
