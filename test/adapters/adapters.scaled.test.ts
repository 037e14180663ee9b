import express from 'express'
import express4 from 'express4'
import koa from 'koa'
import koa2 from 'koa2'
import { isProof } from '../support/scale.ts'
import { describeAdapter } from './adapter-conformance.ts'
import { admission } from './behaviours/admission.ts'
import { afterTheResponse } from './behaviours/after-the-response.ts'
import { leases } from './behaviours/leases.ts'
import { logging } from './behaviours/logging.ts'
import { middleware } from './behaviours/middleware.ts'
import { preflights } from './behaviours/preflights.ts'
import { proxies } from './behaviours/proxies.ts'
import { queues } from './behaviours/queues.ts'
import { refusals } from './behaviours/refusals.ts'
import { responseHeaders } from './behaviours/response-headers.ts'
import { routeRules } from './behaviours/routes.ts'
import { expressDriver } from './drivers/express-driver.ts'
import { fastifyDriver } from './drivers/fastify-driver.ts'
import { fetchDriver } from './drivers/fetch-driver.ts'
import { honoDriver } from './drivers/hono-driver.ts'
import { koaDriver } from './drivers/koa-driver.ts'
import { nestDriver, onExpress, onFastify } from './drivers/nest-driver.ts'

/** What depends on how an adapter reads requests, writes responses and hooks into its framework. */
const ofAdapters = {
  preflights,
  proxies,
  refusals,
  logging,
  responseHeaders,
  routeRules,
  queues,
  leases,
  admission,
  afterTheResponse,
}

/** What depends on the platform below Nest: the rest has been seen on the other platform. */
const { logging: _, routeRules: __, afterTheResponse: ___, ...ofPlatforms } = ofAdapters

const all = { ...ofAdapters, middleware }
describeAdapter(expressDriver('Express 5', express), all)
describeAdapter(fastifyDriver, all)
describeAdapter(koaDriver('Koa 3', koa), all)
describeAdapter(fetchDriver, all)
describeAdapter(honoDriver, all)
if (isProof) {
  describeAdapter(nestDriver('Nest on Express', onExpress), ofAdapters)
  describeAdapter(nestDriver('Nest on Fastify', onFastify), ofPlatforms)
  describeAdapter(expressDriver('Express 4', express4), all)
  describeAdapter(koaDriver('Koa 2', koa2), all)
}
