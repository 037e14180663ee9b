import { algorithmNames } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { filesUnder, readText } from '../support/workspace.ts'

const name = `['"](?:${[...algorithmNames, 'penalty'].join('|')})['"]`
const comparison = new RegExp(`(?:[=!]==?|\\bcase)\\s*${name}|${name}\\s*[=!]==?`)

describe('the name of an algorithm', () => {
  it('is compared in no other module, which use traits instead', () => {
    const found = filesUnder('packages', '.ts')
      .filter((file) => file.includes('/src/') && !file.includes('core/src/algorithms/'))
      .flatMap((file) =>
        readText(file)
          .split('\n')
          .flatMap((line, index) => (comparison.test(line) ? [`${file}:${index + 1}`] : [])),
      )
    expect(found).toEqual([])
  })

  it.each(algorithmNames)('has its rows and its picture in the docs: %s', (algorithm) => {
    expect(readText('docs/limits.md')).toContain(`| \`'${algorithm}'\``)
    expect(readText('docs/layouts.md')).toMatch(new RegExp(`^\\|.*\`${algorithm}\``, 'm'))
    expect(readText('docs/algorithms.md')).toContain(`(images/algorithms/${algorithm}.svg)`)
  })

  it.each([
    "if (policy.algorithm === 'penalty') return",
    "'concurrency' !== algorithm",
    "    case 'leaky-bucket':",
  ])('would be detected in %s', (line) => {
    expect(comparison.test(line)).toBe(true)
  })
})
