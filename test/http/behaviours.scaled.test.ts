import { describeBehaviours } from '../adapters/adapter-conformance.ts'
import { admission } from './behaviours/admission.ts'
import { admissionKeys } from './behaviours/admission-keys.ts'
import { admissionOverflow } from './behaviours/admission-overflow.ts'
import { idempotentRetries } from './behaviours/idempotency.ts'
import { identities } from './behaviours/identities.ts'
import { keys } from './behaviours/keys.ts'
import { movingLimits } from './behaviours/moving-limits.ts'
import { penalties } from './behaviours/penalties.ts'
import { shadows } from './behaviours/shadow.ts'
import { nodeDriver } from './node-driver.ts'

/** What the guard does, whatever framework is around it: the tests of the adapters show that each is wired to it. */
describeBehaviours(nodeDriver, {
  keys,
  identities,
  admission,
  admissionKeys,
  admissionOverflow,
  penalties,
  shadows,
  idempotentRetries,
  movingLimits,
})
