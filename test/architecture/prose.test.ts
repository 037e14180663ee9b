import { parseSync } from 'oxc-parser'
import { describe, expect, it } from 'vitest'
import { filesUnder, packages, readText } from '../support/workspace.ts'

const MAX_AVERAGE_WORDS = 15
const MAX_WORDS = 30
/** The share of sentences that may be longer, or hard to read in one of the other ways. */
const MAX_SHARE = 0.01

/** `Who waits is admitted.`: a clause where a noun could stand. A question may open so. */
const opensWithClause =
  /^["'“(]*(What|Who|Whom|Whose|Where|Which|How|Those|Whether)(ever)?\b(?!.*\?\W*$)/

/** `of what it took`, `; who is blocked`: the same inside of a sentence. */
const standsForNoun =
  /\b(of|by|for|than|to|with|from|gets|takes|gives|keeps|tells) what(ever)?\b|[;:] (what|who)(ever)?\b(?!.*\?\W*$)/

/** `So is the limit.`, `Nor does it wait.`: the verb before its subject. */
const isInverted = /^(So|Nor|Neither) (is|are|was|do|does|did|has|have|can)\b|^Not (that|so)\b/

const faults: readonly (readonly [fault: string, isGuilty: (text: string) => boolean])[] = [
  [`with more than ${MAX_WORDS} words`, (text) => wordsIn(text) > MAX_WORDS],
  ['that open with a clause', (text) => opensWithClause.test(text)],
  ['with a clause in place of a noun', (text) => standsForNoun.test(text)],
  ['with the verb before its subject', (text) => isInverted.test(text)],
]

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'packages/core/GUIDE.md',
  // Those of the API are made from docstrings.
  ...filesUnder('docs', '.md').filter((page) => !page.startsWith('docs/api/')),
  ...packages().map(({ folder }) => `${folder}/README.md`),
  ...filesUnder('examples', 'README.md'),
]

const sources = packages().flatMap(({ folder }) =>
  ['.ts', '.tsx'].flatMap((extension) => filesUnder(`${folder}/src`, extension)),
)

describe.each([
  ['pages', pages.flatMap((page) => sentencesOf(page, readText(page)))],
  ['comments', sources.flatMap((file) => commentsOf(file))],
] as const)('the %s', (_, sentences) => {
  it(`have at most ${MAX_AVERAGE_WORDS} words a sentence on average`, () => {
    const words = sentences.reduce((sum, { text }) => sum + wordsIn(text), 0)
    expect(words / sentences.length).toBeLessThanOrEqual(MAX_AVERAGE_WORDS)
  })

  it.each(faults)('have hardly any sentences %s', (_, isGuilty) => {
    const guilty = sentences.filter(({ text }) => isGuilty(text))
    const listed = guilty.map(({ page, text }) => `${page}: ${text}`).join('\n')
    expect(guilty.length / sentences.length, listed).toBeLessThanOrEqual(MAX_SHARE)
  })
})

describe('sentencesOf', () => {
  it('leaves out code, tables and headings, and reads each item of a list by itself', () => {
    const page = [
      '# A heading. Of two.',
      'One [link](a.md). `two.code()`',
      'goes on, e.g. here. "Three!"',
      '- four',
      '- **five** six',
      '| a cell. | Another. |',
      '```ts',
      'const code = 1. Two.',
      '```',
    ]
    expect(sentencesOf('a.md', page.join('\n')).map(({ text }) => text)).toEqual([
      'One link.',
      'CODE goes on, eg here.',
      '"Three!"',
      'four',
      'five six',
    ])
  })
})

describe('commentsOf', () => {
  it('joins the lines of a comment, and reads each tag by itself', () => {
    const source = [
      '/**',
      ' * One `code`',
      ' * goes on. Two.',
      ' * @default none: three',
      ' */',
      '// Four',
      '// goes on.',
      'const five = 5 // Six.',
    ]
    expect(commentsOf('a.ts', source.join('\n')).map(({ text }) => text)).toEqual([
      'One CODE goes on.',
      'Two.',
      'none: three',
      'Four goes on.',
      'Six.',
    ])
  })
})

interface Sentence {
  readonly page: string
  readonly text: string
}

function sentencesOf(page: string, markdown: string): Sentence[] {
  const prose = markdown
    .replaceAll(/^\s*```[\s\S]*?^\s*```\s*$/gm, '')
    .replaceAll(/^\s*(\||#|<).*$/gm, '')
    .replaceAll(/^\s*([-*+]|\d+\.)\s+/gm, '\n\n')
    .replaceAll(/`[^`]*`/g, 'CODE')
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
    .replaceAll(/\b(e\.g|i\.e|vs|etc)\./g, (short) => short.replaceAll('.', ''))
  return prose
    .split(/\n\s*\n/)
    .flatMap((paragraph) =>
      paragraph.replaceAll(/\s+/g, ' ').split(/(?<=[.!?][)"”]*) (?=["“(]*[A-Z0-9])/),
    )
    .map((text) => ({ page, text: text.trim() }))
    .filter(({ text }) => /[a-z]/i.test(text))
}

function commentsOf(file: string, source = readText(file)): Sentence[] {
  let end = Number.NaN
  const texts: string[] = []
  for (const comment of parseSync(file, source).comments) {
    const isBlock = comment.type === 'Block'
    const text = isBlock ? comment.value.replaceAll(/^\s*\*+ ?/gm, '') : comment.value
    // Lines that follow each other are one comment.
    const goesOn = !isBlock && /^\n *$/.test(source.slice(end, comment.start))
    if (goesOn) texts.push(`${texts.pop()}\n${text}`)
    else texts.push(text)
    end = isBlock ? Number.NaN : comment.end
  }
  return texts
    .filter((text) => !text.includes('biome-ignore'))
    .map((text) => text.replaceAll(/^\s*@example[\s\S]*?(?=^\s*@(?!sluice)|(?![\s\S]))/gm, ''))
    .flatMap((text) =>
      sentencesOf(
        file,
        text.replaceAll(/\{@link ([^}]*)\}/g, '$1').replaceAll(/(?<!`\S*)@\w+/g, '\n\n'),
      ),
    )
}

function wordsIn(text: string): number {
  return text.split(' ').filter((word) => /[a-z0-9]/i.test(word)).length
}
