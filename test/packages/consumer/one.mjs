// Node loads one instance of a package, whether it is imported or required.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { createLimiter } from '@sluice/core'

assert.equal(createRequire(import.meta.url)('@sluice/core').createLimiter, createLimiter)
console.log('one: ok')
