import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { rateLimit } from '@sluice/express'
import { redisStore } from '@sluice/redis'
import express from 'express'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../support/redis-server.ts'
import { serve } from '../support/serve.ts'
import { readText } from '../support/workspace.ts'

/** Beginning of a function that the module runner writes for each export, and that every import calls. */
const exporting = '() => { try { return'

it('the docs list the files and the shapes of one decision, from Express to Redis and back', async () => {
  const server = await startRedis()
  const redis = new Redis(server.url)
  const app = express()
  const store = redisStore(redis, { heartbeatMs: 0 })
  // A machine that stands still for the usual deadline shows the way of the fallback, too.
  app.use(rateLimit({ limit: 100, window: '1m', store, deadlineMs: 60_000 }))
  app.get('/', (_request, response) => void response.end())
  await using served = await serve(app)
  const session = new Session()
  onTestFinished(async () => {
    session.disconnect()
    redis.disconnect()
    await server.stop()
  })
  const ask = async () => expect((await fetch(served.url)).status).toBe(200)
  // The first requests load the script, and warn.
  for (let request = 0; request < 3; request += 1) await ask()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  for (let request = 0; request < 20; request += 1) await ask()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const texts = await textsOf(session, result)
  const called = result.flatMap(({ url, scriptId, functions }) => {
    const [, file] = /packages\/(\w+\/src\/.+)\.ts$/.exec(url) ?? []
    const text = texts.get(scriptId) ?? ''
    const ran = functions.some(
      ({ ranges: [range] }) => range?.count && !text.startsWith(exporting, range.startOffset),
    )
    return file && ran ? [file.replace('/src/', '/')] : []
  })
  // One timer serves the deadlines of many requests.
  const always = called.filter((file) => file !== 'core/waiting/timers')
  expect(always.sort()).toEqual(listed('files'))
  const made = result.flatMap(({ url, functions }) => {
    const [, file] = /packages\/(\w+\/src\/.+)\.ts$/.exec(url) ?? []
    const source = file ? readText(`packages/${file}.ts`) : ''
    return functions.flatMap(({ functionName, ranges: [range] }) => {
      const isMade = range?.count && source.includes(`class ${functionName} `)
      return isMade ? [`${file?.replace('/src/', '/')}/${functionName}`] : []
    })
  })
  const shapes = listed('shapes')
  expect(shapes).toEqual(expect.arrayContaining(made))
  for (const shape of shapes) {
    const [, file = '', name] = /^(.+)\/(\w+)$/.exec(shape) ?? []
    const source = readText(`packages/${file.replace('/', '/src/')}.ts`)
    expect(source, shape).toMatch(new RegExp(`(class|interface|type) ${name}\\b`))
  }
})

/** The texts of our scripts that were called, as V8 runs them. */
async function textsOf(
  session: Session,
  scripts: readonly Profiler.ScriptCoverage[],
): Promise<ReadonlyMap<string, string>> {
  await session.post('Debugger.enable')
  const texts = new Map<string, string>()
  for (const { url, scriptId } of scripts) {
    if (!/packages\/\w+\/src\//.test(url)) continue
    const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId })
    texts.set(scriptId, scriptSource)
  }
  return texts
}

/** The names of a list: a line for each place, `core/limiter: create-limiter`. */
function listed(names: 'files' | 'shapes'): string[] {
  const page = readText('docs/architecture.md')
  const [, list = ''] =
    new RegExp(`The ${names} of one decision\\n.+?\`\`\`text\\n(.+?)\`\`\``, 's').exec(page) ?? []
  return list
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [folder = '', files = ''] = line.split(': ')
      return files.split(' ').map((file) => `${folder}/${file}`)
    })
    .sort()
}
