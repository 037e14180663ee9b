import type { Static } from '@sinclair/typebox'
import type * as fleet from '../../api/schemas/fleet.ts'
import type * as keys from '../../api/schemas/keys.ts'
import type * as policies from '../../api/schemas/policies.ts'

// The types of the answers, as the OpenAPI file has them: both are made of the schemas.

export type Session = Static<typeof fleet.sessionAnswer>
export type Traffic = Static<typeof fleet.trafficAnswer>
export type Policies = Static<typeof policies.policiesAnswer>
export type Policy = Policies['policies'][number]
export type Entry = Policies['entries'][number]
export type Override = Policies['overrides'][number]
export type Change = Static<typeof policies.changeAnswer>
export type Difference = Change['differences'][number]
export type Affected = Change['affected']
export type Export = Static<typeof policies.exportAnswer>
export type Fleet = Static<typeof policies.fleetAnswer>
export type Lookup = Static<typeof keys.lookupAnswer>
export type KeyPolicy = Lookup['policies'][number]
export type KeyAction = Static<typeof keys.actionAnswer>
export type Unlock = Static<typeof keys.unlockAnswer>
export type Top = Static<typeof keys.topAnswer>
export type Near = Static<typeof fleet.nearAnswer>
export type Queues = Static<typeof fleet.queuesAnswer>
export type QueueState = Queues['queues'][number]
export type Dead = Static<typeof fleet.deadAnswer>
export type DeadAction = Static<typeof fleet.deadActionAnswer>
export type Audit = Static<typeof fleet.auditAnswer>
export type AuditRecord = Audit['records'][number]
