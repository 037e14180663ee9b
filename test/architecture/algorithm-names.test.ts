import { algorithmNames } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { filesUnder, readText } from '../support/workspace.ts'

/** Where the names of algorithms are at home. */
const home = 'packages/core/src/algorithms/'

const name = `['"](?:${[...algorithmNames, 'penalty'].join('|')})['"]`
const comparison = new RegExp(`(?:[=!]==?|\\bcase)\\s*${name}|${name}\\s*[=!]==?`)

describe('the name of an algorithm', () => {
  it('is compared in no other module, which use traits instead', () => {
    const found = filesUnder('packages', '.ts')
      .filter((file) => file.includes('/src/') && !file.startsWith(home))
      .flatMap((file) =>
        readText(file)
          .split('\n')
          .flatMap((line, index) => (comparison.test(line) ? [`${file}:${index + 1}`] : [])),
      )
    expect(found).toEqual([])
  })

  it.each(algorithmNames)('has a row in the tables of docs/limits.md: %s', (algorithm) => {
    expect(readText('docs/limits.md')).toContain(`| \`'${algorithm}'\``)
  })

  it.each([
    "if (policy.algorithm === 'penalty') return",
    "'concurrency' !== algorithm",
    "    case 'leaky-bucket':",
  ])('would be detected in %s', (line) => {
    expect(comparison.test(line)).toBe(true)
  })
})
