import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { packAll } from './tarballs.ts'
import { tools } from './tools.ts'

const ours = ['core', 'headers', 'http', 'express', 'fastify', 'nest'].map(
  (name) => `@sluice/${name}`,
)
const nest11 = ['common', 'core', 'platform-express', 'platform-fastify', 'testing']

/** As `nest new` of Nest 11 sets it up. */
const compilerOptions = {
  ...{ module: 'commonjs', moduleResolution: 'node10', target: 'es2023', strict: true },
  ...{ emitDecoratorMetadata: true, experimentalDecorators: true, skipLibCheck: true },
}

it('limits an application of Nest 11 in CommonJS, in Jest without flags', async () => {
  using home = temporaryFolder('nest')
  const folder = home.path
  const tarballs = await packAll()
  const dependencies = Object.fromEntries([
    ...tarballs.filter(({ name }) => ours.includes(name)).map(({ name, path }) => [name, path]),
    ...nest11.map((name) => [`@nestjs/${name}`, '^11.0.0']),
    ...Object.entries({ ...tools, 'reflect-metadata': '^0.2.0', rxjs: '^7.0.0' }),
    ['@types/node', '^20.0.0'],
  ])
  const jest = {
    testMatch: ['**/limits.cts'],
    moduleFileExtensions: ['js', 'cjs', 'cts', 'json', 'node'],
    transform: { '\\.cts$': ['ts-jest', { tsconfig: compilerOptions }] },
  }
  const manifest = { name: 'consumer', private: true, dependencies, jest }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await cp(fileURLToPath(new URL('./nest', import.meta.url)), folder, { recursive: true })
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund']
  await run('npm', install, { cwd: folder, timeoutMs: 300_000 })

  const bin = join(folder, 'node_modules/.bin/jest')
  await expect(run(bin, ['--ci'], { cwd: folder, timeoutMs: 120_000 })).resolves.toBeDefined()
}, 600_000)
