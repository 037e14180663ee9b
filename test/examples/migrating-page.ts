import { readText } from '../support/workspace.ts'

export interface PeerSection {
  /** As it stands in the heading: `express-rate-limit 8`. */
  readonly title: string
  readonly before: string
  readonly after: string
  readonly rows: readonly TableRow[]
}

interface TableRow {
  readonly theirs: readonly string[]
  readonly ours: readonly string[]
}

export const page: string = readText('docs/migrating.md')

export const sections: readonly PeerSection[] = page
  .split(/^## From /m)
  .slice(1)
  .map((text) => ({
    title: text.slice(0, text.indexOf('\n')),
    before: example(text, 'Before'),
    after: example(text, 'After'),
    rows: rowsOf(text),
  }))

export function sectionOf(peer: string): PeerSection {
  const section = sections.find(({ title }) => title.startsWith(`${peer} `))
  if (!section) throw new Error(`docs/migrating.md has no section for ${peer}`)
  return section
}

/** What a piece of code names: options, functions and fields, but no texts, and nothing that it only reads of a value. */
export function namesIn(code: string): readonly string[] {
  const bare = code.replace(/'[^']*'/g, '')
  return bare.match(/(?<![.\w])[A-Za-z][\w-]*/g) ?? []
}

function example(text: string, when: 'Before' | 'After'): string {
  return new RegExp(`^${when}:\\n\\n\`\`\`ts\\n(.*?)^\`\`\``, 'ms').exec(text)?.[1] ?? ''
}

function rowsOf(text: string): readonly TableRow[] {
  const lines = text.split('\n').filter((line) => line.startsWith('| ') && !/^\| -+ \|/.test(line))
  return lines.map((line) => {
    const [, theirs = '', ours = ''] = line.split('|')
    return { theirs: codeIn(theirs), ours: codeIn(ours) }
  })
}

/** The code in a text, each piece as it stands between its marks, and each block. */
export function codeIn(cell: string): readonly string[] {
  const marked = cell.matchAll(/```\w*\n([\s\S]*?)```|`([^`]+)`/g)
  return [...marked].map(([, block, code = '']) => block ?? code)
}
