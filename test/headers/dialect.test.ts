import { checkDialects } from '@sluice/headers'
import { describe, expect, it } from 'vitest'

describe('the option headers', () => {
  it.each([
    [[]],
    [['draft-11', 'legacy']],
    [['legacy', 'draft-11']],
    [['draft-7', 'legacy-delta']],
    [['draft-6']],
  ])('may be %j', (value) => {
    expect(checkDialects(value)).toEqual(value)
  })

  it.each(['draft-8', 'draft-9', 'draft-10'])('takes %s as another name of draft-11', (alias) => {
    expect(checkDialects([alias, 'legacy'])).toEqual(['draft-11', 'legacy'])
  })

  it('is copied, so that a later change of the array has no effect', () => {
    const value = ['draft-11']
    const dialects = checkDialects(value)
    value.push('draft-6')
    expect(dialects).toEqual(['draft-11'])
  })

  it.each([
    [['draft-11', 'draft-7']],
    [['draft-8', 'draft-6']],
    [['legacy', 'draft-6', 'draft-7']],
    [['legacy', 'legacy-delta']],
  ])('refuses two that write the same fields: %j', (value) => {
    expect(() => checkDialects(value)).toThrow(/keep either '.*' or '.*the same fields/)
  })

  const twice = [[['legacy', 'legacy']], [['draft-11', 'draft-9']]]
  it.each(twice)('refuses repetition: %j', (value) => {
    expect(() => checkDialects(value)).toThrow(/already in the list/)
  })

  const noLists = ['draft-11', undefined, null, 7, true, { 0: 'legacy' }]
  const unknown = ['draft-12', 'Draft-11', 'toString', undefined, ['legacy'], Symbol('legacy')]
  const others = [...unknown, Object.create(null)].map((dialect) => [dialect])
  it.each([...noLists, ...others])('refuses %o', (value) => {
    expect(() => checkDialects(value)).toThrow(TypeError)
  })

  it('explains the option, the value, what is legal and what to do', () => {
    expect(() => checkDialects('draft-11')).toThrow(
      "headers must be an array of distinct dialects ('draft-11', 'draft-10', 'draft-9', 'draft-8', 'draft-7', " +
        "'draft-6', 'legacy', 'legacy-delta', 'legacy-github'), but is 'draft-11'; " +
        "write an array such as ['draft-11', 'legacy'], or [] for none",
    )
  })
})
