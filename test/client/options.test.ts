import { type ClientOptions, createFetch, waitFor } from '@sluice/client'
import { describe, expect, it } from 'vitest'

describe('an option that is wrong', () => {
  const ms = 'must be a number of milliseconds, 0 or more'

  it.each<[unknown, string]>([
    [null, 'createFetch takes an object of options, but got null'],
    [{ retrys: 2 }, "no option 'retrys' (did you mean 'retries'?); the options are fetch, r"],
    [{ retry: 2 }, "(did you mean 'retries'?)"],
    [{ maxRetries: 2 }, "(did you mean 'retries'?)"],
    [{ timeout: 2 }, "(did you mean 'maxTotalWaitMs'?)"],
    [{ retryDelay: 2 }, "(did you mean 'backoffMs'?)"],
    [{ jitter: 2 }, "(did you mean 'jitterMs'?)"],
    [{ constructor: 2 }, "there is no option 'constructor'; the options are"],
    [JSON.parse('{"__proto__":2}'), "there is no option '__proto__'; the options are"],
    [{ retries: -1 }, 'retries must be a whole number, 0 or more, but is -1'],
    [{ retries: '3' }, "retries must be a whole number, 0 or more, but is '3'"],
    [{ maxWaitMs: Number.NaN }, `maxWaitMs ${ms}, or Infinity`],
    [{ maxTotalWaitMs: '1m' }, `maxTotalWaitMs ${ms}, or Infinity, but is '1m'`],
    [{ backoffMs: Number.POSITIVE_INFINITY }, `backoffMs ${ms}, but is Infinity`],
    [{ jitterMs: null }, `jitterMs ${ms}, but is null`],
    [{ methods: 'POST' }, "methods must be an array of the names of methods, but is 'POST'"],
    [{ methods: ['GET', ''] }, "methods[1] must be one of the names of methods, but is ''"],
    [{ statuses: [429, 200] }, 'statuses[1] must be one of the statuses from 400 to 599, but is'],
    [{ pace: 1 }, 'pace must be true or false, but is 1'],
    [{ fetch: {} }, 'fetch must be a function, but is an object'],
    [
      { observers: { onWait: 'log' } },
      'observers[0] must be one of the objects with functions onW',
    ],
    [
      { observers: [{ onWait: 5, onGiveUp: () => undefined }] },
      'functions onWait, onWaited or onGiveUp',
    ],
    [{ key: 'me' }, "key must be a function, but is 'me'"],
  ])('is refused when the client is made: %j', (options, message) => {
    expect(() => createFetch(options as ClientOptions)).toThrow(TypeError)
    expect(() => createFetch(options as ClientOptions)).toThrow(message)
  })

  it.each<[object, string]>([
    [{ maxWaitMs: -1 }, 'maxWaitMs must be'],
    [{ baseUrl: '/jobs' }, "baseUrl must be an absolute URL of http or https, but is '/jobs'"],
    [{ interval: 1 }, "no option 'interval' (did you mean 'intervalMs'?)"],
    [{ timeout: 1 }, "(did you mean 'maxWaitMs'?)"],
  ])('is refused by waitFor: %j', async (options, message) => {
    await expect(waitFor(new Response(), options)).rejects.toThrow(message)
  })
})
