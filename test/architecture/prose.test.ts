import { parseSync } from 'oxc-parser'
import { ParseEnglish } from 'parse-english'
import remarkGfm from 'remark-gfm'
import remarkParse from 'remark-parse'
import remarkRetext from 'remark-retext'
import retextRepeatedWords from 'retext-repeated-words'
import { unified } from 'unified'
import { VFile } from 'vfile'
import { expect, it } from 'vitest'
import { filesUnder, packages, readText } from '../support/workspace.ts'
import { plainEnglish } from './plain-english.ts'

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

const prose = unified()
  .use(remarkParse)
  .use(remarkGfm)
  .use(remarkRetext, new ParseEnglish(), { ignore: ['heading'] })
  .use(retextRepeatedWords)
  .use(plainEnglish)

it.each(pages)('%s is plain English', async (page) => {
  const markdown = readText(page).replace(/^---[\s\S]+?\n---\n/, '')
  expect(await faultsOf(markdown)).toEqual([])
})

it('comments are plain English', async () => {
  const found = await Promise.all(
    sources.map(async (file) => {
      const faults = await faultsOf(commentsOf(file))
      return faults.map((fault) => `${file}: ${fault}`)
    }),
  )
  expect(found.flat()).toEqual([])
})

async function faultsOf(markdown: string): Promise<string[]> {
  const file = new VFile(markdown)
  await prose.run(prose.parse(file), file)
  return file.messages.map(({ reason }) => reason)
}

/** The comments of a file, as Markdown. */
function commentsOf(file: string): string {
  const source = readText(file)
  let end = Number.NaN
  const texts: string[] = []
  for (const comment of parseSync(file, source).comments) {
    const isBlock = comment.type === 'Block'
    const text = isBlock ? comment.value.replaceAll(/^\s*\*+ ?/gm, '') : comment.value.trim()
    // Lines that follow each other are one comment.
    const goesOn = !isBlock && /^\n *$/.test(source.slice(end, comment.start))
    if (goesOn) texts.push(`${texts.pop()}\n${text}`)
    else texts.push(text)
    end = isBlock ? Number.NaN : comment.end
  }
  return texts
    .filter((text) => !text.includes('biome-ignore'))
    .map((text) =>
      text
        .replaceAll(/^\s*@example[\s\S]*?(?=^\s*@(?!sluice)|(?![\s\S]))/gm, '')
        .replaceAll(/\{@link ([^}]*)\}/g, '$1')
        .replaceAll(/(?<!`\S*)@\w+/g, '\n\n'),
    )
    .join('\n\n')
}
