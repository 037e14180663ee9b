import { policyFields } from '@sluice/core'

/** What may stand at the top level for the only policy; key and cost stand there anyway. */
export const shorthandFields: readonly string[] = [...policyFields, 'defaultLimit']

/** Whether options bring policies, in either form. */
export function bringsPolicies(options: object): boolean {
  return Object.keys(options).some(
    (field) => field === 'policies' || shorthandFields.includes(field),
  )
}
