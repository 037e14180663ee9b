import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type RateLimitOptions, rateLimit } from '@sluice/express'
import { type RateLimitPluginOptions, rateLimitPlugin } from '@sluice/fastify'
import express from 'express'
import express4 from 'express4'
import fastify, { type FastifyInstance } from 'fastify'
import { onTestFinished } from 'vitest'

/** A route, as the frameworks write it that differ. */
export interface Pattern {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly express5?: string
}

interface RouteApp {
  readonly port: number
  /** What stands before every path. */
  readonly prefix: string
}

/** One way to set up a framework. */
export interface RouteSetup {
  readonly name: string
  start(
    limits: RateLimitOptions & RateLimitPluginOptions,
    patterns: readonly Pattern[],
    reached: (pattern: Pattern, url: string) => void,
  ): Promise<RouteApp>
}

const both = [false, true]

/** Every combination of what an application, and a router of its own, can be told about case and slashes. */
export const expressSetups: readonly RouteSetup[] = [
  ['Express 4', express4] as const,
  ['Express 5', express] as const,
].flatMap(([version, framework]) =>
  both.flatMap((caseSensitive) =>
    both.flatMap((strict) =>
      (['application', 'router', 'router under a path'] as const).map(
        (where) =>
          ({
            name: `${version}, ${where}, ${caseSensitive ? 'case-sensitive' : 'any case'}, ${strict ? 'strict' : 'any slash'}`,
            start: async (limits, patterns, reached) => {
              const app = framework()
              app.set('case sensitive routing', caseSensitive)
              app.set('strict routing', strict)
              const prefix = where === 'router under a path' ? '/api' : ''
              const target =
                where === 'application' ? app : framework.Router({ caseSensitive, strict })
              if (prefix === '') app.use(rateLimit(limits))
              else app.use(prefix, rateLimit(limits))
              for (const pattern of patterns) {
                const path =
                  version === 'Express 5' ? (pattern.express5 ?? pattern.path) : pattern.path
                target[pattern.method === 'GET' ? 'get' : 'post'](path, (req, res) => {
                  reached(pattern, req.originalUrl)
                  res.end()
                })
              }
              if (target !== app) app.use(prefix || '/', target)
              // What Express does with escapes that it cannot decode, without the stack on the console.
              app.use((_error: Error, _req: unknown, res: express.Response, _next: unknown) => {
                res.status(400).end()
              })
              const server = app.listen(0, '127.0.0.1')
              onTestFinished(() => void server.close().closeAllConnections())
              await once(server, 'listening')
              return { port: (server.address() as AddressInfo).port, prefix }
            },
          }) satisfies RouteSetup,
      ),
    ),
  ),
)

/** Every combination of what Fastify's router can be told. */
export const fastifySetups: readonly RouteSetup[] = both.flatMap((caseSensitive) =>
  both.flatMap((ignoreTrailingSlash) =>
    both.flatMap((ignoreDuplicateSlashes) =>
      both.flatMap((useSemicolonDelimiter) =>
        ['', '/api'].map((prefix) => {
          const maxParamLength = prefix === '' ? 100 : 5_000
          const routerOptions = {
            caseSensitive,
            ignoreTrailingSlash,
            ignoreDuplicateSlashes,
            useSemicolonDelimiter,
            maxParamLength,
          }
          const on = Object.entries(routerOptions).filter(([, value]) => value === true)
          return {
            name: `Fastify 5${prefix && ', plugin under a path'}, ${on.map(([name]) => name).join(', ') || 'nothing on'}`,
            start: async (limits, patterns, reached) => {
              const app: FastifyInstance = fastify({ routerOptions, forceCloseConnections: true })
              onTestFinished(() => app.close())
              await app.register(
                async (scope) => {
                  await scope.register(rateLimitPlugin, limits)
                  for (const pattern of patterns) {
                    scope.route({
                      method: pattern.method,
                      url: pattern.path,
                      handler: async (request) => reached(pattern, request.originalUrl),
                    })
                  }
                },
                { prefix },
              )
              const url = await app.listen({ port: 0, host: '127.0.0.1' })
              return { port: Number(new URL(url).port), prefix }
            },
          } satisfies RouteSetup
        }),
      ),
    ),
  ),
)
