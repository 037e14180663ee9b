import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Blank } from './basics.tsx'
import { Field } from './forms.tsx'

export interface Column<T> {
  readonly title: string
  readonly cell: (item: T) => ComponentChildren
  /** Value that sorts the column; numbers start with the highest. */
  readonly by?: (item: T) => string | number
  /**
   * `num`: right-aligned. `act`: right-aligned, always visible. `cut`: takes the remaining space.
   * `wide`: not on narrow screens. `roomy`: only on wide ones. `slim-cut`: cut on narrow ones.
   */
  readonly look?: 'num' | 'act' | 'cut' | 'wide' | 'roomy' | 'num wide' | 'cut wide' | 'slim-cut'
}

interface TableProps<T> {
  readonly label: string
  readonly items: readonly T[]
  readonly idOf: (item: T) => string
  readonly columns: readonly Column<T>[]
  /** Shown instead of a table without rows. */
  readonly blank?: ComponentChildren
  readonly filter?: {
    readonly hint: string
    readonly initial?: string
    readonly textOf: (item: T) => string
  }
}

/** The height of a row in CSS (`--row`), and its line. */
const rowPx = 38
/** Lists up to this length are rendered in full. */
const shortList = 60
/** Number of rows rendered above and below the visible ones. */
const spare = 12

/** A table that renders only the visible rows: a list may have thousands. */
export function Table<T>({ label, items: all, idOf, columns, blank, filter }: TableProps<T>) {
  const box = useRef<HTMLElement>(null)
  const [wanted, setWanted] = useState(filter?.initial ?? '')
  const [sorted, setSorted] = useState<Column<T>['title']>()
  const shownIds = useRef<readonly string[]>([])
  const items = orderOf()
  shownIds.current = items.map(idOf)
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

  function orderOf(): readonly T[] {
    const text = wanted.trim().toLowerCase()
    const found = text
      ? all.filter((item) => filter?.textOf(item).toLowerCase().includes(text))
      : all
    const by = columns.find(({ title }) => title === sorted)?.by
    const inOrder = by ? found.toSorted((one, other) => compare(by(one), by(other))) : found
    // No row moves away from the pointer or the focus.
    if (!box.current?.matches(':hover, :focus-within')) return inOrder
    const places = new Map(shownIds.current.map((id, place) => [id, place]))
    const placeOf = (item: T) => places.get(idOf(item)) ?? places.size
    return inOrder.toSorted((one, other) => placeOf(one) - placeOf(other))
  }

  const sortBy = (title: string) => {
    shownIds.current = []
    setSorted(title === sorted ? undefined : title)
  }
  const search = filter && (
    <div class="bar">
      <Field label="Filter" value={wanted} onValue={setWanted} placeholder={filter.hint} />
    </div>
  )
  if (items.length === 0) {
    return (
      <>
        {all.length > 0 && search}
        {all.length > 0 ? <Blank title="Nothing matches the filter" /> : blank}
      </>
    )
  }
  const first = isLong ? Math.max(0, Math.floor(view.top / rowPx) - spare) : 0
  const last = isLong
    ? Math.min(items.length, Math.ceil((view.top + view.height) / rowPx) + spare)
    : items.length
  return (
    <>
      {search}
      <section
        ref={box}
        class={isLong ? 'scroll tall' : 'scroll'}
        // It must be focusable, to scroll it with the keyboard.
        tabIndex={doesScroll ? 0 : undefined}
        aria-label={doesScroll ? `${label}: rows` : undefined}
      >
        <table class="table" aria-label={label} aria-rowcount={items.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map(({ title, look, by }) => (
                <th
                  key={title}
                  scope="col"
                  class={look}
                  aria-sort={title === sorted ? 'other' : undefined}
                >
                  {by ? (
                    <button type="button" class="sort" onClick={() => sortBy(title)}>
                      {title} {title === sorted ? '▾' : '▿'}
                    </button>
                  ) : (
                    title || <span class="unseen">Actions</span>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Gap rows={first} columns={columns.length} />
            {items.slice(first, last).map((item, index) => (
              <tr key={idOf(item)} aria-rowindex={first + index + 2}>
                {columns.map(({ title, look, cell }, place) => {
                  const Cell = place === 0 ? 'th' : 'td'
                  return (
                    <Cell key={title} scope={place === 0 ? 'row' : undefined} class={look}>
                      {cell(item)}
                    </Cell>
                  )
                })}
              </tr>
            ))}
            <Gap rows={items.length - last} columns={columns.length} />
          </tbody>
        </table>
      </section>
    </>
  )
}

/** Texts from A to Z, numbers from highest to lowest. */
function compare(one: string | number, other: string | number): number {
  return typeof one === 'number' && typeof other === 'number'
    ? other - one
    : String(one).localeCompare(String(other))
}

/** Takes the space of rows that are not rendered. */
function Gap({ rows, columns }: { rows: number; columns: number }) {
  if (rows === 0) return null
  return (
    <tr class="gap">
      <td colSpan={columns} style={{ height: `${rows * rowPx}px` }} />
    </tr>
  )
}
