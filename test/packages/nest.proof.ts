import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { installPacked } from './consumer.ts'
import { tools } from './tools.ts'

const ours = ['core', 'headers', 'http', 'express', 'fastify', 'nest']
const nest11 = ['common', 'core', 'platform-express', 'platform-fastify', 'testing']

/** As `nest new` of Nest 11 sets it up. */
const compilerOptions = {
  ...{ module: 'commonjs', moduleResolution: 'node10', target: 'es2023', strict: true },
  ...{ emitDecoratorMetadata: true, experimentalDecorators: true, skipLibCheck: true },
}

it('limits an application of Nest 11 in CommonJS, in Jest without flags', async () => {
  using home = temporaryFolder('nest')
  const folder = home.path
  const dependencies = {
    ...Object.fromEntries(nest11.map((name) => [`@nestjs/${name}`, '^11.0.0'])),
    ...{ ...tools, 'reflect-metadata': '^0.2.0', rxjs: '^7.0.0', '@types/node': '^20.0.0' },
  }
  const jest = {
    testMatch: ['**/limits.cts'],
    moduleFileExtensions: ['js', 'cjs', 'cts', 'json', 'node'],
    transform: { '\\.cts$': ['ts-jest', { tsconfig: compilerOptions }] },
  }
  await cp(fileURLToPath(new URL('./nest', import.meta.url)), folder, { recursive: true })
  await installPacked(folder, ours, { dependencies, more: { jest } })

  const bin = join(folder, 'node_modules/.bin/jest')
  await expect(run(bin, ['--ci'], { cwd: folder, timeoutMs: 120_000 })).resolves.toBeDefined()
}, 600_000)
