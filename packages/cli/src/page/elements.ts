/** A child of an element: text is text, whatever it holds. */
export type Child = Node | string

interface Attributes {
  readonly class?: string
  readonly id?: string
  /** All other attributes. */
  readonly [name: string]: string | undefined
}

/** Makes an element of HTML. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(attribute, value)
  }
  made.append(...children)
  return made
}

/** Makes a section with a heading. */
export function panel(title: string, ...children: readonly Child[]): HTMLElement {
  return element(
    'section',
    { class: 'panel', 'aria-label': title },
    element('h2', {}, title),
    ...children,
  )
}

export interface Column<Row> {
  readonly title: string
  /** Numbers stand to the right. */
  readonly isNumber?: true
  cell(row: Row): Child
}

/** Makes a table that scrolls by itself on a narrow screen. */
export function table<Row>(
  label: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): HTMLElement {
  const head = columns.map(({ title, isNumber }) =>
    element('th', { scope: 'col', ...(isNumber && { class: 'num' }) }, title),
  )
  const body = rows.map((row) =>
    element(
      'tr',
      {},
      ...columns.map(({ isNumber, cell }) =>
        element('td', isNumber ? { class: 'num' } : {}, cell(row)),
      ),
    ),
  )
  return scrolling(
    label,
    element(
      'table',
      { 'aria-label': label },
      element('thead', {}, element('tr', {}, ...head)),
      element('tbody', {}, ...body),
    ),
  )
}

/** Makes a box that scrolls sideways, by the keyboard too. */
export function scrolling(label: string, child: Node): HTMLElement {
  return element(
    'div',
    { class: 'scrolls', role: 'group', tabindex: '0', 'aria-label': label },
    child,
  )
}

const whole = new Intl.NumberFormat('en')

/** Writes a number in full: `12,345`. */
export function count(value: number): string {
  return whole.format(value)
}

/** Writes a share of 1 in percent. */
export function percent(share: number): string {
  const value = share * 100
  if (!Number.isFinite(value)) return '–'
  if (value > 0 && value < 0.1) return '<0.1 %'
  return `${Number(value.toPrecision(value < 10 ? 2 : 3))} %`
}

const units: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
]

/** Writes a duration in its largest unit: `1.5 min`. */
export function duration(ms: number): string {
  const [unit, size] = units.find(([, each]) => ms >= each) ?? ['ms', 1]
  return `${Number((ms / size).toPrecision(3))} ${unit}`
}

/** Writes a time, in UTC as all of the report. */
export function moment(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').slice(0, 19)
}
