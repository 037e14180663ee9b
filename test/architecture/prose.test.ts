import { describe, expect, it } from 'vitest'
import { filesUnder, packages, readText } from '../support/workspace.ts'

const MAX_AVERAGE_WORDS = 15
const MAX_WORDS = 30
/** The share of sentences that may be longer, and that may open with a clause. */
const MAX_SHARE = 0.01

/** `Who waits is admitted.`: a clause where a noun could stand. A question may open so. */
const opensWithClause = /^["'“(]*(What|Who|Whom|Whose|Where|Which|How|Those)(ever)?\b(?!.*\?\W*$)/

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...filesUnder('docs', '.md'),
  ...packages().map(({ folder }) => `${folder}/README.md`),
]

describe('the pages', () => {
  const sentences = pages.flatMap((page) => sentencesOf(page, readText(page)))

  it(`have at most ${MAX_AVERAGE_WORDS} words a sentence on average`, () => {
    const words = sentences.reduce((sum, { text }) => sum + wordsIn(text), 0)
    expect(words / sentences.length).toBeLessThanOrEqual(MAX_AVERAGE_WORDS)
  })

  it.each([
    [`with more than ${MAX_WORDS} words`, (text: string) => wordsIn(text) > MAX_WORDS],
    ['that open with a clause', (text: string) => opensWithClause.test(text)],
  ])('have hardly any sentences %s', (_, isGuilty) => {
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

function wordsIn(text: string): number {
  return text.split(' ').filter((word) => /[a-z0-9]/i.test(word)).length
}
