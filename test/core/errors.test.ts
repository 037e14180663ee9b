import { errorCodes } from '@sluice/core'
import { expect, it } from 'vitest'
import { readText } from '../support/workspace.ts'

it('documents every code, and none that does not exist', () => {
  const documented = [...readText('docs/errors.md').matchAll(/^\| `(\w+)` +\|/gm)].map(
    ([, code]) => code,
  )
  expect(documented).toEqual(Object.keys(errorCodes))
})
