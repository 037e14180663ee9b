import { policyNameProblem } from '@sluice/headers'
import { describe, expect, it } from 'vitest'

describe('a policy name', () => {
  it.each(['default', 'per-user_v2.eu', 'A', 'a'.repeat(64)])('%j is fine', (name) => {
    expect(policyNameProblem(name)).toBeUndefined()
  })

  it.each(['naïve', 'tab\there', 'x\r\ny', '', 'nul\0', '\u007f', 'end\n', '\ud800'])(
    'H01: %j is illegal',
    (name) => {
      expect(policyNameProblem(name)).toBe('illegal')
    },
  )

  it.each(['a"b\\c', 'per user, v2; eu', '2-in-1min', '-', ' ', '~', 'a'.repeat(65)])(
    '%j is legal but unusual',
    (name) => {
      expect(policyNameProblem(name)).toBe('unusual')
    },
  )
})
