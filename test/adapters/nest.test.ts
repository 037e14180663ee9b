import { Controller, Get, Injectable, Module, Redirect, Req, UseGuards } from '@nestjs/common'
import {
  header,
  memoryStore,
  RateLimit,
  RateLimitGuard,
  RateLimitKey,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
  user,
} from '@sluice/nest'
import { describe, expect, it, vi } from 'vitest'
import { Cats, controllerOf, one, start } from './nest-app.ts'

describe('the decorators of @sluice/nest', () => {
  it('count a controller together, a handler separately, and the rest by the module', async () => {
    const methods = { a: [], b: [], own: [RateLimit({ limit: 1 }), Get(['own', 'alias'])] }
    const Limited = controllerOf('Limited', methods, RateLimit({ limit: 2 }))
    const { ask, statuses } = await start({ controllers: [Limited, Cats] })

    expect(await statuses('/a', '/b', '/a')).toEqual([200, 200, 429])
    expect(await statuses('/own', '/alias')).toEqual([200, 429])
    expect(await statuses('/', '/')).toEqual([200, 429])
    const policy = async (path: string) => (await ask(path)).headers.get('ratelimit-policy')
    expect(await policy('/a')).toBe('"default-Limited";q=2;w=60')
    expect(await policy('/own')).toBe('"default-Limited.own";q=1;w=60')
  })

  it('add to the policies of the module, or name one, decided all or nothing', async () => {
    const Limited = controllerOf('Limited', {
      added: [RateLimit({ name: 'added', limit: 1, combine: 'add' })],
      named: [RateLimit('strict')],
      rest: [],
    })
    const { ask, statuses } = await start({
      controllers: [Limited],
      limits: RateLimitModule.forRoot({
        ...{ ...one, name: 'all', limit: 3 },
        profiles: { strict: { limit: 1, window: '1h' } },
      }),
    })

    const first = await ask('/added')
    expect(first.headers.get('ratelimit')).toBe('"all";r=2;t=60, "added";r=0;t=60')
    expect(await statuses('/added', '/added')).toEqual([429, 429])
    expect(await statuses('/rest', '/rest', '/rest')).toEqual([200, 200, 429])
    expect(await statuses('/named', '/named')).toEqual([200, 429])
  })

  it('skip a controller, but not a handler with its own limit', async () => {
    const methods = { skipped: [], limited: [SkipRateLimit(false)], own: [RateLimit({ limit: 2 })] }
    const Skipped = controllerOf('Skipped', methods, SkipRateLimit())
    const { ask, statuses } = await start({ controllers: [Skipped, Cats] })

    const skipped = await ask('/skipped')
    expect([skipped.status, skipped.headers.has('ratelimit')]).toEqual([200, false])
    expect(await statuses('/limited', '/', '/skipped')).toEqual([200, 429, 200])
    expect(await statuses('/own', '/own', '/own')).toEqual([200, 200, 429])
  })

  it('set the key: the nearest one, or in one place that of the limits', async () => {
    const by = (name: string) => header(`x-${name}`)
    const methods = {
      a: [],
      b: [RateLimitKey(by('handler'))],
      c: [RateLimit({ limit: 1, key: by('limits') })],
      d: [RateLimitKey(by('handler')), RateLimit('strict')],
    }
    const Keyed = controllerOf('Keyed', methods, RateLimitKey(by('class')))
    const { ask } = await start({
      controllers: [Keyed],
      limits: RateLimitModule.forRoot({ ...one, profiles: { strict: { limit: 1, window: '1m' } } }),
    })
    const twice = async (path: string, name: string) => {
      const each = (value: string) => ask(path, { headers: { [`x-${name}`]: value } })
      return [(await each('ada')).status, (await each('bob')).status, (await each('ada')).status]
    }

    expect(await twice('/a', 'class')).toEqual([200, 200, 429])
    expect(await twice('/b', 'handler')).toEqual([200, 200, 429])
    expect(await twice('/c', 'limits')).toEqual([200, 200, 429])
    expect(await twice('/d', 'handler')).toEqual([200, 200, 429])
    expect(await twice('/d', 'class')).toEqual([200, 429, 429])
  })

  it('count methods replaced by another decorator separately', async () => {
    const traced: MethodDecorator = (_target, _name, descriptor) => {
      descriptor.value = (() => 'traced') as never
    }
    const own = [traced, RateLimit(one)]
    const Traced = controllerOf('Traced', { a: [...own, Get('a')], b: [...own, Get('b')] })
    const { statuses } = await start({ controllers: [Traced] })

    expect(await statuses('/a', '/b', '/a', '/b')).toEqual([200, 200, 429, 429])
  })

  it.each([
    [{ limit: -1 }, /^@RateLimit of Wrong\.wrong: limit .* but is -1/],
    [{ limits: 5 }, /^@RateLimit of Wrong\.wrong: .*limits/],
    ['unknown', /^@RateLimit of Wrong\.wrong: .*unknown/],
  ])('are checked before the first request: %j', async (limits, message) => {
    const Wrong = controllerOf('Wrong', { wrong: [RateLimit(limits as never)] })
    await expect(start({ controllers: [Wrong] })).rejects.toThrow(message)
  })
})

it('RateLimit and RateLimitKey reject invalid limits and keys', () => {
  expect(() => RateLimit(false as never)).toThrow(/@RateLimit must be options, or the name/)
  expect(() => RateLimitKey('user' as never)).toThrow(/@RateLimitKey must be a resolver/)
  expect(() => RateLimitKey(user as never)).toThrow(/@RateLimitKey: user\(…\)/)
})

describe('RateLimitModule', () => {
  it.each([
    [undefined, /RateLimitModule must be a plain object of options/],
    [{ ...one, unknown: 1 }, /unknown/],
    [{ ...one, global: 'no' }, /global must be true or false/],
    [{ ...one, exchangeOf: 1 }, /exchangeOf must be a function of the context/],
  ])('refuses %j', async (options, message) => {
    const limits = RateLimitModule.forRoot(options as never)
    await expect(start({ limits })).rejects.toThrow(message)
  })

  it('takes its options from a factory, and from a class', async () => {
    @Injectable()
    class Settings {
      readonly limit = 2
      createRateLimitOptions(): RateLimitModuleOptions {
        return { ...one, limit: this.limit }
      }
    }
    @Module({ providers: [Settings], exports: [Settings] })
    class SettingsModule {}
    const ways = [
      RateLimitModule.forRootAsync({
        imports: [SettingsModule],
        inject: [Settings],
        useFactory: async (settings: Settings) => ({ ...one, limit: settings.limit }),
      }),
      RateLimitModule.forRootAsync({ useClass: Settings }),
    ]
    for (const limits of ways) {
      const { statuses } = await start({ limits })
      expect(await statuses('/', '/', '/')).toEqual([200, 200, 429])
    }
  })

  it('limits only decorated handlers with global: false, which needs no policies', async () => {
    const Login = controllerOf('Login', { login: [RateLimit(one)] })
    const limits = RateLimitModule.forRoot({ global: false })
    const { statuses } = await start({ limits, controllers: [Login, Cats] })
    expect(await statuses('/', '/', '/')).toEqual([200, 200, 200])
    expect(await statuses('/login', '/login')).toEqual([200, 429])
  })

  it('shows the decision, and provides the limiter through the guard', async () => {
    @Controller()
    class Login {
      readonly #guard: RateLimitGuard
      constructor(guard: RateLimitGuard) {
        this.#guard = guard
      }
      @Get()
      async login(@Req() request: { rateLimit?: { outcomes: { remaining?: number }[] } }) {
        const left = request.rateLimit?.outcomes[0]?.remaining
        await this.#guard.limiter.reset('ada')
        return { left }
      }
    }
    Reflect.defineMetadata('design:paramtypes', [RateLimitGuard], Login)
    const limits = RateLimitModule.forRoot({ ...one, key: () => 'ada' })
    const { ask } = await start({ limits, controllers: [Login] })

    for (let i = 0; i < 3; i += 1) expect(await (await ask()).json()).toEqual({ left: 0 })
  })

  it('counts once if the guard is global, on the controller and on the handler', async () => {
    const guards = UseGuards(RateLimitGuard)
    const Guarded = controllerOf('Guarded', { all: [guards] }, guards)
    const limits = RateLimitModule.forRoot({ ...one, limit: 2 })
    const { statuses } = await start({ limits, controllers: [Guarded] })
    expect(await statuses('/all', '/all', '/all')).toEqual([200, 200, 429])
  })

  it.each(['Express', 'Fastify'] as const)(
    "removes headers from a handler's redirect with hideOnRedirect, on %s",
    async (platform) => {
      const hiding = RateLimit({ limit: 1, hideOnRedirect: true })
      const Moved = controllerOf('Moved', { moved: [Redirect('/elsewhere'), hiding] })
      const { ask } = await start({ controllers: [Moved], platform })
      const moved = await ask('/moved', { redirect: 'manual' })

      expect([moved.status, moved.headers.has('ratelimit')]).toEqual([302, false])
      const refused = await ask('/moved', { redirect: 'manual' })
      expect([refused.status, refused.headers.has('ratelimit')]).toEqual([429, true])
    },
  )

  it('closes the limiter with the application, after its last request', async () => {
    const store = memoryStore()
    const close = vi.fn(async () => undefined)
    const { app, statuses } = await start({
      limits: RateLimitModule.forRoot({ ...one, store: Object.assign(store, { close }) }),
    })
    expect(await statuses('/')).toEqual([200])
    expect(close).not.toHaveBeenCalled()
    await app.close()
    expect(close).toHaveBeenCalled()
  })
})
