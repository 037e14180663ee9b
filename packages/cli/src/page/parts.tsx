import type { ComponentChildren } from 'preact'
import type { Column } from '../report/columns.ts'

export function Panel({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
      </header>
      <div class="body stack">{children}</div>
    </section>
  )
}

export function Scrolling({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus.
    <div class="scroll tall" role="group" tabIndex={0} aria-label={label}>
      {children}
    </div>
  )
}

interface TableProps<Row> {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
}

export function Table<Row>({ label, columns, rows }: TableProps<Row>) {
  const classOf = (head: string) => (head.startsWith('>') ? 'num' : '')
  return (
    <Scrolling label={label}>
      <table class="table" aria-label={label}>
        <thead>
          <tr>
            {columns.map(([head]) => (
              <th key={head} scope="col" class={classOf(head)}>
                {head.replace(/^>/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row}>
              {columns.map(([head, cell]) => (
                <td key={head} class={classOf(head)}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  )
}
