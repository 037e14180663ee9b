import express from 'express'
import express4 from 'express4'
import koa from 'koa'
import koa2 from 'koa2'
import { describeAdapter } from './adapter-conformance.ts'
import { accessLists } from './behaviours/access-lists.ts'
import { admission } from './behaviours/admission.ts'
import { admissionIdentities } from './behaviours/admission-identities.ts'
import { admissionKeys } from './behaviours/admission-keys.ts'
import { admissionOverflow } from './behaviours/admission-overflow.ts'
import { afterTheResponse } from './behaviours/after-the-response.ts'
import { basics } from './behaviours/basics.ts'
import { bypasses } from './behaviours/bypasses.ts'
import { chains } from './behaviours/chains.ts'
import { idempotentRetries } from './behaviours/idempotency.ts'
import { identities } from './behaviours/identities.ts'
import { keys } from './behaviours/keys.ts'
import { leases } from './behaviours/leases.ts'
import { logging } from './behaviours/logging.ts'
import { movingLimits } from './behaviours/moving-limits.ts'
import { penalties } from './behaviours/penalties.ts'
import { preflights } from './behaviours/preflights.ts'
import { proxies } from './behaviours/proxies.ts'
import { queues } from './behaviours/queues.ts'
import { refusals } from './behaviours/refusals.ts'
import { requestValues } from './behaviours/request-values.ts'
import { responseHeaders } from './behaviours/response-headers.ts'
import { routeRules } from './behaviours/routes.ts'
import { shadows } from './behaviours/shadow.ts'
import { sharing } from './behaviours/sharing.ts'
import { storeFailures } from './behaviours/store-failures.ts'
import { contractVectors } from './behaviours/vectors.ts'
import { expressDriver } from './drivers/express-driver.ts'
import { fastifyDriver } from './drivers/fastify-driver.ts'
import { koaDriver } from './drivers/koa-driver.ts'

const behaviours = {
  basics,
  bypasses,
  requestValues,
  keys,
  identities,
  preflights,
  accessLists,
  proxies,
  refusals,
  logging,
  responseHeaders,
  chains,
  routeRules,
  sharing,
  storeFailures,
  contractVectors,
  queues,
  leases,
  admission,
  admissionIdentities,
  admissionKeys,
  admissionOverflow,
  penalties,
  afterTheResponse,
  shadows,
  idempotentRetries,
  movingLimits,
}

describeAdapter(expressDriver('Express 4', express4), behaviours)
describeAdapter(expressDriver('Express 5', express), behaviours)
describeAdapter(fastifyDriver, behaviours)
describeAdapter(koaDriver('Koa 2', koa2), behaviours)
describeAdapter(koaDriver('Koa 3', koa), behaviours)
