import {
  type Framework,
  forward,
  logins,
  optionsOf,
  type Shell,
  uploads,
  users,
} from './framework.ts'

const guard = '{ provide: APP_GUARD, useClass: RateLimitGuard }'

const byUser =
  (planOf = ''): Shell =>
  (limit) =>
    `import { type CanActivate, Controller, type ExecutionContext, Get, Module } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { … } from '@sluice/nest'

${users}

/** Your authentication. */
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest()
    request.user = users.get(request.headers['x-api-key'])
    return true
  }
}

function userOf(context: ExecutionContext): User | undefined {
  return context.switchToHttp().getRequest().user
}

const account = user((context) => userOf(context)?.id)
${planOf}const limits = RateLimitModule.forRoot(${optionsOf(limit)})

@Controller('items')
class ItemsController {
  @Get() list() {
    return []
  }
}

@Module({
  imports: [limits],
  controllers: [ItemsController],
  providers: [
    { provide: APP_GUARD, useClass: AuthGuard }, // before the limits
    ${guard},
  ],
})
export class AppModule {}
`

/** A module whose controller has limits of its own. */
const moduleOf = (controller: string): string => `@Module({
  imports: [RateLimitModule.forRoot({ global: false })], // only decorated handlers
  controllers: [${controller}],
  providers: [${guard}],
})
export class AppModule {}
`

const decorator = (limit: string): string =>
  `@RateLimit(${optionsOf(limit).replaceAll('\n', '\n  ')})`

export const nest: Framework = {
  title: 'NestJS',
  shells: {
    user: byUser(),
    plans: byUser('const planOf = (context: ExecutionContext) => userOf(context)?.plan\n'),
    login: (
      limit,
    ) => `import { Body, Controller, HttpCode, Module, Post, UnauthorizedException } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { … } from '@sluice/nest'

${logins}

const account = user((context) => accountOf(context.switchToHttp().getRequest().body))

@Controller()
class LoginController {
  @Post('login')
  @HttpCode(200)
  ${decorator(limit)}
  async login(@Body() login: unknown) {
    if (await isRight(login)) return { ok: true }
    throw new UnauthorizedException('wrong name or password')
  }
}

${moduleOf('LoginController')}`,
    upload: (limit) => `import type { IncomingMessage } from 'node:http'
import {
  Controller,
  type ExecutionContext,
  HttpCode,
  HttpException,
  Module,
  Put,
  Req,
} from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { … } from '@sluice/nest'

${uploads}

function bytes(context: ExecutionContext): number {
  return Number(context.switchToHttp().getRequest().headers['content-length'] ?? 1)
}

@Controller('files')
class FilesController {
  @Put(':name')
  @HttpCode(201)
  ${decorator(limit)}
  async put(@Req() request: IncomingMessage) {
    if (!request.headers['content-length']) throw new HttpException('Length Required', 411)
    return { saved: await save(request) }
  }
}

${moduleOf('FilesController')}`,
    proxy: (limit) => `import { type IncomingMessage, request } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { All, Controller, Module, Req, Res } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { … } from '@sluice/nest'
import type { Request, Response } from 'express'

${forward}

@Controller()
class ProxyController {
  @All('{*path}')
  async proxy(@Req() incoming: Request, @Res() response: Response) {
    const answer = await forward(incoming, incoming.ip)
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    await pipeline(answer, response)
  }
}

@Module({
  imports: [RateLimitModule.forRoot(${optionsOf(limit)})],
  controllers: [ProxyController],
  providers: [${guard}],
})
class AppModule {}

export const app = await NestFactory.create<NestExpressApplication>(AppModule, {
  bodyParser: false,
})
app.set('trust proxy', 1) // one load balancer
`,
    test: (body) => `import { it } from 'node:test'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { … } from '@sluice/nest'
import { expectLimited, expectNotLimited, fakeClock } from '@sluice/testing'
import request from 'supertest'

@Controller()
class Hello {
  @Get() hello() {
    return 'hello'
  }
}

@Module({
  imports: [RateLimitModule.forRoot({ limit: 1, window: '1m' })],
  controllers: [Hello],
  providers: [${guard}],
})
class AppModule {} // import yours

const app = await NestFactory.create(AppModule, { logger: false })
await app.init()
const get = () => request(app.getHttpServer()).get('/')

${body}`,
  },
}
