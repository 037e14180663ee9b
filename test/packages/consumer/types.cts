import { createFetch } from '@sluice/client'
import { createLimiter, memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { rateLimitPlugin } from '@sluice/fastify'
import { createOutbound } from '@sluice/outbound'
import { redisStore } from '@sluice/redis'

import express = require('express')

const app = express()
app.use(rateLimit({ limit: 100, window: '1m' }))

export const seen: readonly unknown[] = [
  createFetch,
  createLimiter,
  createOutbound,
  memoryStore,
  rateLimitPlugin,
  redisStore,
]
