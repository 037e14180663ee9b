import { describeBehaviours } from '../adapters/adapter-conformance.ts'
import { accessLists } from './behaviours/access-lists.ts'
import { admissionIdentities } from './behaviours/admission-identities.ts'
import { admissionKeys } from './behaviours/admission-keys.ts'
import { admissionOverflow } from './behaviours/admission-overflow.ts'
import { bypasses } from './behaviours/bypasses.ts'
import { idempotentRetries } from './behaviours/idempotency.ts'
import { identities } from './behaviours/identities.ts'
import { keys } from './behaviours/keys.ts'
import { movingLimits } from './behaviours/moving-limits.ts'
import { penalties } from './behaviours/penalties.ts'
import { shadows } from './behaviours/shadow.ts'
import { sharing } from './behaviours/sharing.ts'
import { storeFailures } from './behaviours/store-failures.ts'
import { nodeDriver } from './node-driver.ts'

/** What the guard does, whatever framework is around it: the tests of the adapters show that each is wired to it. */
describeBehaviours(nodeDriver, {
  bypasses,
  keys,
  identities,
  accessLists,
  sharing,
  storeFailures,
  admissionIdentities,
  admissionKeys,
  admissionOverflow,
  penalties,
  shadows,
  idempotentRetries,
  movingLimits,
})
