import type { Static } from '@sinclair/typebox'
import type * as keys from '../../api/schemas/keys.ts'
import type * as policies from '../../api/schemas/policies.ts'
import type * as views from '../../api/schemas/views.ts'

// The types of the answers, as the OpenAPI file has them: both are made of the schemas.

export type Session = Static<typeof views.sessionAnswer>
export type Traffic = Static<typeof views.trafficAnswer>
export type Policies = Static<typeof policies.policiesAnswer>
export type Policy = Policies['policies'][number]
export type Entry = Policies['entries'][number]
export type Override = Policies['overrides'][number]
export type Change = Static<typeof policies.changeAnswer>
export type Difference = Change['differences'][number]
export type Affected = Change['affected']
export type Diff = Static<typeof policies.diffAnswer>
export type Export = Static<typeof policies.exportAnswer>
export type Fleet = Static<typeof policies.fleetAnswer>
export type Lookup = Static<typeof keys.lookupAnswer>
export type KeyPolicy = Lookup['policies'][number]
export type KeyAction = Static<typeof keys.actionAnswer>
export type Unlock = Static<typeof keys.unlockAnswer>
export type Top = Static<typeof keys.topAnswer>
export type Queues = Static<typeof views.queuesAnswer>
export type QueueState = Queues['queues'][number]
export type Dead = Static<typeof views.deadAnswer>
export type DeadAction = Static<typeof views.deadActionAnswer>
export type Audit = Static<typeof views.auditAnswer>
export type AuditRecord = Audit['records'][number]
