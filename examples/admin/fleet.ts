import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { start, startAlertmanager, startPrometheus, startRedis, stopAll } from './programs.ts'
import { startTraffic } from './traffic.ts'

const { env } = process
const ports = {
  api: Number(env.PORT ?? 3000),
  prometheus: Number(env.PROMETHEUS_PORT ?? 9090),
  alertmanager: Number(env.ALERTMANAGER_PORT ?? 9093),
}

/**
 * Runs two instances of the API under traffic, until Ctrl-C or for SECONDS. Prometheus and Alertmanager watch them. Every minute their Redis is
 * frozen for five seconds.
 */
export async function runFleet(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end())
  const redis = env.REDIS_URL ? undefined : startRedis(ports.api + 3)
  const redisUrl = redis ? `redis://127.0.0.1:${ports.api + 3}` : env.REDIS_URL
  if (!redisUrl) console.log('redis-server is not installed: each instance counts separately.')
  await printAlerts(ports.api + 2)
  const instances = [ports.api, ports.api + 1].map((port) => `http://127.0.0.1:${port}`)
  await Promise.all([startApi(ports.api, redisUrl), startApi(ports.api + 1, redisUrl)])
  const traffic = startTraffic(instances)

  console.log(`metrics        ${instances.map((url) => `${url}/metrics`).join('  ')}`)
  const watchers = [
    ['Prometheus', await startPrometheus(ports), `http://127.0.0.1:${ports.prometheus}/alerts`],
    ['Alertmanager', await startAlertmanager(ports), `http://127.0.0.1:${ports.alertmanager}`],
  ] as const
  for (const [name, isThere, url] of watchers) {
    console.log(name.padEnd(14), isThere ? url : `is not installed: apt install, or docker compose`)
  }

  const seconds = Number(env.SECONDS ?? Number.POSITIVE_INFINITY)
  const frozenFor = Number(env.FREEZE_SECONDS ?? 5)
  const frozenAt = Math.min(15, Math.floor(seconds / 3))
  for (let second = 1; second <= seconds; second += 1) {
    await sleep(1_000)
    if (second % 60 === frozenAt && redis?.kill('SIGSTOP')) console.log('Redis is frozen.')
    if (second % 60 === frozenAt + frozenFor && redis?.kill('SIGCONT'))
      console.log('Redis is back.')
  }
  traffic.stop()
  const answers = [...traffic.statuses].sort().map(([status, count]) => `${count} × ${status}`)
  console.log(`answers: ${answers.join(', ')}`)
  await end()
}

/** Each instance is a separate process. */
async function startApi(port: number, redisUrl = ''): Promise<void> {
  const child = start(process.execPath, [...process.execArgv, String(process.argv[1])], {
    // Prometheus in Docker connects from another address.
    env: {
      ...env,
      ROLE: '',
      HOST: '0.0.0.0',
      TRAFFIC: 'off',
      PORT: String(port),
      REDIS_URL: redisUrl,
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const isUp = once(child, 'message')
  const hasEnded = once(child, 'exit').then(() => {
    throw new Error(`the API on port ${port} has exited`)
  })
  await Promise.race([isUp, hasEnded])
}

/** Prints each notification from Alertmanager once: it repeats an alert when another one with the same name starts or ends. */
async function printAlerts(port: number): Promise<void> {
  const states = new Map<string, string>()
  const server = createServer(async (request, response) => {
    const told: Told = JSON.parse(Buffer.concat(await request.toArray()).toString())
    for (const { status, labels, annotations, fingerprint } of told.alerts) {
      if (states.get(fingerprint) === status) continue
      states.set(fingerprint, status)
      console.log(`${status}: ${labels.alertname}: ${annotations.summary}`)
    }
    response.end()
  })
  await once(server.listen(port), 'listening')
}

/** The part of an Alertmanager webhook that is printed. */
interface Told {
  readonly alerts: readonly {
    readonly status: 'firing' | 'resolved'
    readonly fingerprint: string
    readonly labels: { readonly alertname: string }
    readonly annotations: { readonly summary: string }
  }[]
}

async function end(): Promise<void> {
  await stopAll()
  process.exit()
}
