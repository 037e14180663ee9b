import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePortPair } from './free-port.ts'
import { findOrInstall } from './programs.ts'
import { startServer } from './server-process.ts'

export type RabbitmqServer = Awaited<ReturnType<typeof startRabbitmq>>

/**
 * Starts a server of its own on free ports of 127.0.0.1, with its own node name, data and logs in a temporary folder, and
 * with its own epmd: the one that Erlang starts by itself would outlive it.
 */
export async function startRabbitmq(settings: readonly string[] = []) {
  const sbin = dirname(findOrInstall('rabbitmq'))
  const folder = await mkdtemp(join(tmpdir(), 'sluice-rabbitmq-'))
  // No connection of another test takes them while the server is down.
  const port = await freePortPair()
  const mapper = await freePortPair()
  const home = join(folder, 'home')
  await Promise.all([home, join(folder, 'data'), join(folder, 'log')].map((path) => mkdir(path)))
  const config = join(folder, 'rabbitmq.conf')
  const listeners = [
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    'distribution.listener.interface = 127.0.0.1',
  ]
  await writeFile(config, [...listeners, ...settings, ''].join('\n'))
  await writeFile(join(home, '.erlang.cookie'), 'sluice')
  await chmod(join(home, '.erlang.cookie'), 0o400)
  const env = {
    ...process.env,
    HOME: home,
    RABBITMQ_NODENAME: `sluice-${port}@localhost`,
    RABBITMQ_CONFIG_FILE: config,
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_GENERATED_CONFIG_DIR: join(folder, 'config'),
    RABBITMQ_DIST_PORT: `${port + 1}`,
    // Schedulers that spin would take the processor from the tests.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+sbwt none +sbwtdcpu none +sbwtdio none',
    ERL_EPMD_PORT: `${mapper}`,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    // Then the script becomes the server, instead of watching over it.
    detached: '1',
  }
  const epmd = await startServer({
    ...{ program: 'epmd', args: ['-port', `${mapper}`, '-address', '127.0.0.1'], folder },
    options: { env, stdio: 'ignore' },
    isUp: () => true,
  })
  const launch = () =>
    startServer({
      ...{ program: join(sbin, 'rabbitmq-server'), args: [], options: { env, cwd: folder } },
      // Its folder is removed when it is stopped, and not when it is killed.
      folder: join(folder, 'nothing'),
      // An Erlang machine needs seconds to start, and more of them on a busy machine.
      startTimeoutMs: 120_000,
      isUp: (_pid, log) => log.includes('Server startup complete'),
    })
  let server = await launch().catch(async (error) => {
    await epmd.end('SIGKILL')
    throw error
  })
  let isStopped = false

  async function stop(): Promise<void> {
    if (isStopped) return
    isStopped = true
    // There is nothing to keep.
    await server.end('SIGKILL')
    await epmd.end('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }

  return {
    port,
    url: `amqp://127.0.0.1:${port}`,
    /** Freezes the process: connections stay open and nothing answers. */
    pause: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
    /** Crashes the server, and waits until it is gone. Its data stay. */
    kill: () => server.end('SIGKILL'),
    /** Starts it again where it was, after `kill`. */
    async restart() {
      server = await launch()
    },
    /** Runs a command of rabbitmqctl, as long as the server runs. */
    control: (...args: string[]) =>
      execFileSync(join(sbin, 'rabbitmqctl'), ['-q', ...args], { env, encoding: 'utf8' }),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
