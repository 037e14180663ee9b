import { type RateLimitOptions, rateLimit } from '@sluice/express'
import { type RateLimitPluginOptions, rateLimitPlugin } from '@sluice/fastify'
import express from 'express'
import express4 from 'express4'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { onTestFinished } from 'vitest'
import { portOf } from './drivers/driver.ts'

/** A route, as the frameworks write it that differ. */
export interface Pattern {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly express5?: string
}

/** One way to set up a framework. */
export interface RouteSetup {
  readonly name: string
  start(
    limits: RateLimitOptions & RateLimitPluginOptions,
    patterns: readonly Pattern[],
    reached: (pattern: Pattern, url: string) => void,
  ): Promise<{ port: number; prefix: string }>
}

const both = [false, true]

/** Every combination of what an application, and a router of its own, can be told about case and slashes. */
export const expressSetups: readonly RouteSetup[] = [
  { version: 'Express 4', framework: express4 } as const,
  { version: 'Express 5', framework: express } as const,
].flatMap((made) =>
  both.flatMap((caseSensitive) =>
    both.flatMap((strict) =>
      (['application', 'router', 'router under a path'] as const).map((where) =>
        expressSetup({ ...made, caseSensitive, strict, where }),
      ),
    ),
  ),
)

function expressSetup(at: {
  version: string
  framework: typeof express
  caseSensitive: boolean
  strict: boolean
  where: 'application' | 'router' | 'router under a path'
}): RouteSetup {
  const { version, framework, caseSensitive, strict, where } = at
  const prefix = where === 'router under a path' ? '/api' : ''
  return {
    name: `${version}, ${where}, ${caseSensitive ? 'case-sensitive' : 'any case'}, ${strict ? 'strict' : 'any slash'}`,
    async start(limits, patterns, reached) {
      const app = framework()
      app.set('case sensitive routing', caseSensitive)
      app.set('strict routing', strict)
      const target = where === 'application' ? app : framework.Router({ caseSensitive, strict })
      app.use(prefix || '/', rateLimit(limits))
      for (const pattern of patterns) {
        const { method, path, express5 = path } = pattern
        target[method === 'GET' ? 'get' : 'post'](
          version === 'Express 5' ? express5 : path,
          (req, res) => {
            reached(pattern, req.originalUrl)
            res.end()
          },
        )
      }
      if (target !== app) app.use(prefix || '/', target)
      // What Express does with escapes that it cannot decode, without the stack on the console.
      app.use((_error: Error, _req: unknown, res: express.Response, _next: unknown) => {
        res.status(400).end()
      })
      return { port: await portOf(app.listen(0, '127.0.0.1')), prefix }
    },
  }
}

const routerFlags =
  'caseSensitive ignoreTrailingSlash ignoreDuplicateSlashes useSemicolonDelimiter'.split(' ')

/** Every combination of what Fastify's router can be told. */
export const fastifySetups: readonly RouteSetup[] = routerFlags
  .reduce<string[][]>((sets, name) => sets.flatMap((on) => [on, [...on, name]]), [[]])
  .flatMap((on) => ['', '/api'].map((prefix) => fastifySetup(on, prefix)))

function fastifySetup(on: readonly string[], prefix: string): RouteSetup {
  const named = Object.fromEntries(on.map((name) => [name, true]))
  const maxParamLength = prefix === '' ? 100 : 5_000
  const routerOptions = { caseSensitive: false, ...named, maxParamLength }
  return {
    name: `Fastify 5${prefix && ', plugin under a path'}, ${on.join(', ') || 'nothing on'}`,
    async start(limits, patterns, reached) {
      const app: FastifyInstance = fastify({ routerOptions, forceCloseConnections: true })
      onTestFinished(() => app.close())
      const plugin = async (scope: FastifyInstance) => {
        await scope.register(rateLimitPlugin, limits)
        for (const pattern of patterns) {
          const handler = async ({ originalUrl }: FastifyRequest) => reached(pattern, originalUrl)
          scope.route({ method: pattern.method, url: pattern.path, handler })
        }
      }
      await app.register(plugin, { prefix })
      const url = await app.listen({ port: 0, host: '127.0.0.1' })
      return { port: Number(new URL(url).port), prefix }
    },
  }
}
