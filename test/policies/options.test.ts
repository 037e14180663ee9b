import { policyFields } from '@sluice/core'
import { formats } from '@sluice/headers'
import { describe, expect, it } from 'vitest'
import { type OptionOwner, optionsOf } from '../../packages/http/src/options/options.ts'
import { fileSchema, policySchema } from '../../packages/policies/src/schema/file-schema.ts'
import { readText } from '../support/workspace.ts'

/** Options that are code: a file cannot hold them. In a file, `default` of a limit is `defaultLimit`. */
const code = ['admission', 'defaultLimit', 'fallback', 'handler', 'observers', 'shed', 'store']
/** A policy without a name may stand beside the settings in code, and not in a file. */
const isShorthand = (option: string) => policyFields.some((field) => field === option)
const ofFiles = ['$schema', 'overrides']

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, unknown>>
  readonly anyOf?: readonly ObjectSchema[]
  readonly [field: string]: unknown
}

/** The fields of all forms of an object. */
function fieldsOf({ properties = {}, anyOf = [] }: ObjectSchema): readonly string[] {
  return [...new Set([...Object.keys(properties), ...anyOf.flatMap(fieldsOf)])]
}

const [route = {}]: ObjectSchema[] = Object.values(fileSchema.properties.routes.patternProperties)

const fields: Readonly<Record<OptionOwner, readonly string[]>> = {
  guard: fieldsOf(fileSchema),
  route: fieldsOf(route),
  policy: fieldsOf(policySchema),
}

describe.each(['guard', 'route', 'policy'] as const)('the fields of a %s in a file', (place) => {
  it('are the options in code that are data', () => {
    const all = optionsOf(place).filter((option) => !code.includes(option))
    const data = all.filter((option) => place === 'policy' || !isShorthand(option))
    const own = fields[place].filter((field) => !ofFiles.includes(field))
    expect([...own].sort()).toEqual([...data].sort())
  })
})

it('the dialects in a file, and those of docs/headers.md, are those in code', () => {
  const schema = JSON.stringify(fileSchema.properties.headers)
  const page = readText('docs/headers.md')
  for (const dialect of Object.keys(formats)) {
    expect(schema).toContain(`"${dialect}"`)
    expect(page).toContain(`\`'${dialect}'\``)
  }
})
