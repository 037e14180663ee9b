import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/run.ts'
import { until } from '../support/until.ts'
import type { Tarball } from './tarballs.ts'

export const registryTools = {
  packages: { verdaccio: '^6.10.4' },
  // Verdaccio asks for a tag of it, which mirrors of npm's registry may not have.
  overrides: { 'node-fetch': '^2.7.0' },
}

/**
 * Starts a package registry that has our packages, published as a release does it, and asks npm's registry for all others.
 * @param folder where `registryTools` are installed
 * @param node of version 22 or later
 */
export async function startRegistry(folder: string, node: string, tarballs: readonly Tarball[]) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/`
  const upstream = (await run('npm', ['config', 'get', 'registry'], { cwd: folder })).trim()
  const config = {
    storage: join(folder, 'storage'),
    uplinks: { npm: { url: upstream } },
    packages: {
      '@sluice/*': { access: '$all', publish: '$all' },
      '**': { access: '$all', proxy: 'npm' },
    },
    log: { type: 'stdout', level: 'error' },
  }
  // YAML contains JSON.
  await writeFile(join(folder, 'registry.yaml'), JSON.stringify(config))
  const program = join(folder, 'node_modules/verdaccio/bin/verdaccio')
  const args = [program, '--config', 'registry.yaml', '--listen', `127.0.0.1:${port}`]
  const server = spawn(node, args, { cwd: folder, stdio: 'inherit' })
  const stop = async () => {
    if (server.exitCode === null && server.kill()) await once(server, 'exit')
  }
  try {
    const isUp = async () => (await fetch(`${url}-/ping`)).ok
    await until('the registry answers', isUp, { timeoutMs: 60_000 })
    const credentials = `--//127.0.0.1:${port}/:_authToken=none`
    const args = ['--access', 'public', '--registry', url, credentials]
    const waiting = tarballs.map(({ path }) => ['publish', path, ...args])
    const publish = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        await run('npm', next, { cwd: folder })
      }
    }
    await Promise.all([publish(), publish()])
  } catch (error) {
    await stop()
    throw error
  }
  return { url, [Symbol.asyncDispose]: stop }
}
