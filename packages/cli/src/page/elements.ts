import type { Column } from '../report/columns.ts'

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

/** Makes a table that scrolls by itself on a narrow screen. */
export function table<Row>(
  label: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): HTMLElement {
  const classOf = (head: string) => (head.startsWith('>') ? { class: 'num' } : {})
  const heads = columns.map(([head]) =>
    element('th', { scope: 'col', ...classOf(head) }, head.replace(/^>/, '')),
  )
  const body = rows.map((row) =>
    element('tr', {}, ...columns.map(([head, cell]) => element('td', classOf(head), cell(row)))),
  )
  const parts = [element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...body)]
  return scrolling(label, element('table', { 'aria-label': label }, ...parts))
}

/** Makes a box that scrolls sideways, by the keyboard too. */
export function scrolling(label: string, child: Node): HTMLElement {
  return element(
    'div',
    { class: 'scrolls', role: 'group', tabindex: '0', 'aria-label': label },
    child,
  )
}
