export type { Fault } from './file/explain.ts'
export { type PlacedPolicy, placedPolicies } from './file/named-policies.ts'
export type { KeyEntry, OverrideEntry, PolicyEntry, PolicyFile } from './file/policy-file.ts'
export type {
  ChangeOptions,
  LivePolicySet as Policies,
  PolicyState,
  PolicyStatus,
  Preview,
  StatusEntry,
} from './live-policy-set.ts'
export { type OpenPoliciesOptions, openPolicies } from './open-policies.ts'
export { type Problem, policyFileProblems, readPolicyFile } from './reading/read-file.ts'
export type { CountedKey, NamedIdentity } from './versions/counted-keys.ts'
export { type Difference, differences } from './versions/diff.ts'
export {
  type Entry,
  type EntryTarget,
  effective,
  isNoteText,
  type Kill,
  type PolicyEdit,
} from './versions/layer.ts'
export type { Member, VersionRecord } from './versions/shared-layer.ts'
export type { Refused, VersionObservers } from './versions/version.ts'
