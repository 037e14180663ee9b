import express from 'express'
import express4 from 'express4'
import koa from 'koa'
import koa2 from 'koa2'
import { isProof, scaled } from '../support/scale.ts'
import { describeAdapter } from './adapter-conformance.ts'
import { accessLists } from './behaviours/access-lists.ts'
import { admission } from './behaviours/admission.ts'
import { admissionIdentities } from './behaviours/admission-identities.ts'
import { admissionKeys } from './behaviours/admission-keys.ts'
import { admissionOverflow } from './behaviours/admission-overflow.ts'
import { afterTheResponse } from './behaviours/after-the-response.ts'
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
import { fetchDriver } from './drivers/fetch-driver.ts'
import { honoDriver } from './drivers/hono-driver.ts'
import { koaDriver } from './drivers/koa-driver.ts'
import { nestDriver, onExpress, onFastify } from './drivers/nest-driver.ts'

/** What depends on how an adapter reads requests, writes responses and hooks into its framework. */
const ofAdapters = {
  requestValues,
  preflights,
  proxies,
  refusals,
  logging,
  responseHeaders,
  chains,
  routeRules,
  contractVectors,
  queues,
  leases,
  admission,
  afterTheResponse,
}

/** What the guard does behind any adapter: one is enough for `npm test`, three of different kinds for the proofs. */
const ofTheGuard = {
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
}

const all = { ...ofAdapters, ...ofTheGuard }
/** What depends on the platform below Nest: the rest has been seen on the other platform. */
const ofPlatforms = {
  preflights,
  proxies,
  refusals,
  responseHeaders,
  chains,
  leases,
  queues,
  admission,
}
describeAdapter(expressDriver('Express 5', express), all)
describeAdapter(fastifyDriver, scaled(ofAdapters, all))
describeAdapter(koaDriver('Koa 3', koa), ofAdapters)
describeAdapter(fetchDriver, scaled(ofAdapters, all))
describeAdapter(honoDriver, ofAdapters)
if (isProof) {
  describeAdapter(nestDriver('Nest on Express', onExpress), ofAdapters)
  describeAdapter(nestDriver('Nest on Fastify', onFastify), ofPlatforms)
  describeAdapter(expressDriver('Express 4', express4), ofAdapters)
  describeAdapter(koaDriver('Koa 2', koa2), ofAdapters)
}
