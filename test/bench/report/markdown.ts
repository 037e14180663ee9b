import { figureLabels, showNumber } from './figure-labels.ts'
import type { Comparison, Report, Row } from './report.ts'

/** All tables: for each case the figures, and how ours compare. */
export function markdown(report: Report, machine: string): string {
  const suites = [...groupBy(report.rows, ({ suite }) => suite)]
  const versions = Object.entries(report.versions).map(([name, version]) => `${name} ${version}`)
  const parts = [
    `# Results\n\n${machine}. Versions: ${versions.join(', ')}.`,
    ...report.notes,
    ...suites.map(([suite, rows]) => `## ${suite}\n\n${caseSections(report, rows)}`),
    failureSection(report),
  ]
  return `${parts.filter(Boolean).join('\n\n')}\n`
}

function caseSections(report: Report, rows: readonly Row[]): string {
  const sections = [...groupBy(rows, (row) => row.case)].map(([name, members]) => {
    const comparisons = report.comparisons.filter(
      (one) => one.case === name && one.suite === members[0]?.suite,
    )
    const ratios = comparisons.length > 0 ? `\n\n${ratioTable(comparisons)}` : ''
    return `### ${name}\n\n${figureTable(members)}${ratios}`
  })
  return sections.join('\n\n')
}

function figureTable(rows: readonly Row[]): string {
  const shown = Object.keys(figureLabels).filter((name) => rows.some((row) => name in row.figures))
  const head = ['', ...shown.map((name) => figureLabels[name]?.label ?? name)]
  const body = rows.map(({ subject, figures }) => [
    subject,
    ...shown.map((name) => showNumber(figures[name] ?? Number.NaN)),
  ])
  return table(head, body)
}

/** Ours ÷ theirs in the same rounds, for the main figures. */
function ratioTable(comparisons: readonly Comparison[]): string {
  const mains = Object.entries(figureLabels).filter(
    ([name, { main }]) => main && comparisons.some(({ ratios }) => name in ratios),
  )
  const others = [...new Set(comparisons.map(({ against }) => against))]
  const head = [
    `ours ÷ theirs: ${mains.map(([, { label }]) => label).join(' · ')}`,
    ...others.map((name) => `÷ ${name}`),
  ]
  const body = [...groupBy(comparisons, ({ subject }) => subject)].map(([subject, list]) => [
    subject,
    ...others.map((name) => {
      const ratios = list.find(({ against }) => against === name)?.ratios ?? {}
      return mains.map(([figure]) => showNumber(ratios[figure] ?? Number.NaN)).join(' · ')
    }),
  ])
  return table(head, body)
}

function failureSection({ failures }: Report): string {
  if (failures.length === 0) return ''
  const rows = failures.map((one) => [one.suite, one.case, one.subject, one.reason])
  return `## Left out\n\n${table(['suite', 'case', 'subject', 'reason'], rows)}`
}

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const rows = [head, ...body].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = head.map((_, column) =>
    Math.max(3, ...rows.map((row) => [...(row[column] ?? '')].length)),
  )
  // The first column holds words, the others mostly numbers.
  const line = (row: readonly string[]): string =>
    `| ${widths.map((width, i) => (i === 0 ? (row[i] ?? '').padEnd(width) : (row[i] ?? '').padStart(width))).join(' | ')} |`
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`
  const [first = [], ...rest] = rows
  return [line(first), rule, ...rest.map(line)].join('\n')
}

/** `Map.groupBy`, which Node 20 lacks. */
function groupBy<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const name = nameOf(item)
    groups.set(name, [...(groups.get(name) ?? []), item])
  }
  return groups
}
