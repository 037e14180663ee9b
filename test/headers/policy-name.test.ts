import { policyNameProblem } from '@sluice/headers'
import { describe, expect, it } from 'vitest'

describe('a policy name', () => {
  it.each(['default', 'per-user_v2.eu', 'A', 'a'.repeat(64)])('%j is fine', (name) => {
    expect(policyNameProblem(name)).toBeUndefined()
  })

  const illegal = ['naïve', 'tab\there', 'x\r\ny', '', 'nul\0', '\u007f', 'end\n', '\ud800']
  it.each(illegal)('H01: %j is illegal', (name) => {
    expect(policyNameProblem(name)).toBe('illegal')
  })

  const unusual = ['a"b\\c', 'per user, v2; eu', '2-in-1min', '-', ' ', '~', 'a'.repeat(65)]
  it.each(unusual)('%j is legal but unusual', (name) => {
    expect(policyNameProblem(name)).toBe('unusual')
  })
})
