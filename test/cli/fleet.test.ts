import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { runCli } from '../../packages/cli/src/commands/run-cli.ts'
import { serve } from '../admin/serve.ts'
import { storeKinds, storesIn } from '../admin/stores.ts'
import { until } from '../support/until.ts'
import { startFleet } from './fleet-server.ts'
import { captured, runSluice } from './run-sluice.ts'

const because = ['--reason', 'a test']

describe.each(storeKinds)('a fleet on %s', (kind) => {
  const newStore = storesIn(kind)
  const start = async () => startFleet({ store: await newStore() })

  async function startWithDenied() {
    const fleet = await start()
    for (let i = 0; i < 7; i += 1) await fleet.visit('ada')
    return fleet
  }

  it('top lists the keys that are denied most, once', async () => {
    const { sluice, port } = await startWithDenied()
    const { exitCode, stdout, stderr } = await sluice(['top'], 'viewer')
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`127.0.0.1:${port}  7 requests, 2 denied in the last`)
    expect(stdout).toMatch(/^DENIED +± UP TO +SHARE +POLICY +KEY$/m)
    expect(stdout).toMatch(/^ +2 +0 +100% +burst +[\w-]{22}$/m)
    const asked = await sluice(['top', '--by', 'asked', '--window', '1h', '--policy', 'burst'])
    expect(asked.stdout).toMatch(/^ +7 +0 +100% +burst/m)
    const near = await sluice(['top', '--near'], 'viewer')
    expect(near.stdout).toMatch(/OF USUAL LIMIT +DENIED IN 1H +POLICY +KEY\n +\d+% +2 +burst/)
    const { live, top } = JSON.parse((await sluice(['top', '--json'])).stdout)
    expect([live.requests.denied, top.lists[0].keys[0].count]).toEqual([2, 2])
  })

  it('inspect shows a key under each policy that counts it', async () => {
    const { sluice } = await startWithDenied()
    const { exitCode, stdout } = await sluice(['inspect', 'user', 'ada'], 'support')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^burst +denied +5 +5 +\d.*m .* 2 \/ 2 \/ 2$/m)
    const unknown = await sluice(['inspect', 'user zoe'])
    expect(unknown.stdout).toContain(': nothing counted now')
    const { digest } = JSON.parse((await sluice(['inspect', 'user ada', '--json'])).stdout)
    // A digest does not tell whose override applies, and Redis keeps no limits.
    const verdict = kind === 'memory' ? 'denied +5 +5' : 'unknown +5 +depends on the request'
    const byDigest = await sluice(['inspect', digest])
    expect(byDigest.stdout).toMatch(new RegExp(`^burst +${verdict}`, 'm'))
  })

  it('inspect shows a limit from a request, or that it depends; and the level of a bucket', async () => {
    const file = `deadlineMs: 10000
policies:
  - { name: api, window: 1h, key: user, limit: { tiers: { pro: 100 }, by: plan, default: 1 } }
  - { name: bucket, algorithm: token-bucket, limit: 15, burst: 10, window: 1m, key: user }`
    const { sluice, visit } = await startFleet({ store: await newStore(), file })
    for (let i = 0; i < 4; i += 1) await visit('ada', 'acme', 'pro')
    expect((await sluice(['inspect', 'user ada'])).stdout).toMatch(/^api +allowed +4 +100 /m)
    const { stdout } = await sluice(['inspect', 'user zoe'])
    expect(stdout).toMatch(/^api +unknown +0 +depends on the request +– /m)
    expect(stdout).toMatch(/^bucket +allowed +0 +10, \+15 in 1m +– /m)
  })

  it('reset shows the state, asks, and deletes it', async () => {
    const { sluice, visit } = await startWithDenied()
    const dry = await sluice(['reset', 'user ada', ...because, '--dry-run'])
    expect(dry.stdout).toMatch(/would be reset\n {2}burst\n.*nothing was changed/s)
    const unasked = await sluice(['reset', 'user ada', ...because])
    expect(unasked.exitCode).toBe(2)
    expect(unasked.stderr).toContain(
      'Nothing was changed: confirmation needs a terminal. Add --yes',
    )
    const other = await sluice(['reset', 'user ada', '--policy', 'nothing', ...because, '--yes'])
    expect([other.exitCode, other.stderr]).toEqual([2, expect.stringContaining('nothing')])
    expect(await visit('ada')).toBe(429)
    const burst = ['reset', 'user ada', '--policy', 'burst', ...because, '--yes']
    expect((await sluice(burst, 'support')).stdout).toMatch(/was reset\n {2}burst\nDone\.\n$/)
    await until('ada passes', async () => (await visit('ada')) === 200)
    const again = await sluice(['reset', 'user zoe', ...because, '--yes'])
    expect(again.stdout).toContain('nothing to reset')
  })

  it('inspect and reset explain why a computed key is not found', async () => {
    const file = 'policies: [{ name: login, limit: 1, window: 1h, key: login }]'
    const { sluice, visit } = await startFleet({ store: await newStore(), file })
    for (let i = 0; i < 2; i += 1) await visit('ada')
    const note = 'note: A function in your code creates the keys of login.'
    expect((await sluice(['inspect', 'login ada'])).stdout).toContain(note)
    const reset = await sluice(['reset', 'login ada', ...because, '--yes'])
    expect(reset.stdout).toContain(`nothing to reset\n${note}`)
  })

  it('raise and block concern one key for a time, and unblock lifts the block', async () => {
    const { sluice, visit } = await startWithDenied()
    const raise = ['raise', 'user ada', '--policy', 'burst', '--limit', '8', ...because]
    const raised = await sluice([...raise, '--for', '1h', '--yes'], 'support')
    expect(raised.stdout).toMatch(/overrides: .*"limit":8,"until":"2.*\nDone/s)
    expect(await visit('ada')).toBe(200)
    const done = await sluice(['block', 'user mallory', '--for', '1h', ...because, '--yes'])
    expect(done.stdout).toMatch(/^user mallory \(.{22}\): is blocked\n.* until \d{4}-\d\d-\d\dT/)
    expect(await visit('mallory')).toBe(429)
    expect((await sluice(['inspect', 'user mallory'])).stdout).toMatch(/^penalty +blocked/m)
    const lifted = await sluice(['unblock', 'user mallory', ...because, '--yes'])
    expect(lifted.stdout).toContain('is unblocked\n  penalty\nDone.')
    await until('mallory passes', async () => (await visit('mallory')) === 200)
    const wrong = await sluice(['block', 'user mallory', '--for', 'ever', ...because, '--yes'])
    expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('for must be')])
  })

  it('off, shadow and on set the kill switch', async () => {
    const { sluice, visit, policies } = await startWithDenied()
    expect((await sluice(['off', ...because, '--dry-run'])).stdout).toContain('kill: none → off')
    expect(policies.state.kill).toBe('none')
    const off = await sluice(['off', ...because, '--yes'])
    expect(off.stdout).toMatch(/^Version \S+ is now active:\n {2}kill: none → off\nDone/)
    expect(await visit('ada')).toBe(200)
    expect((await sluice(['shadow', ...because, '--yes', '--json'])).exitCode).toBe(0)
    expect(policies.state.kill).toBe('shadow')
    expect((await sluice(['on', ...because, '--yes'])).exitCode).toBe(0)
    expect(await visit('ada')).toBe(429)
    expect((await sluice(['on', ...because, '--yes'])).stdout).toContain('No difference')
  })

  it('refuses what a token does not allow, with the message of the API', async () => {
    const { sluice, policies } = await startWithDenied()
    const off = await sluice(['off', ...because, '--yes'], 'viewer')
    expect([off.exitCode, off.stdout]).toEqual([2, ''])
    expect(off.stderr).toBe('error: This needs the role policies.\n')
    const { stderr } = await sluice(['top'], 'nobody')
    expect(stderr).toBe('error: You are not authorised. Set SLUICE_ADMIN_TOKEN.\n')
    expect(policies.state.kill).toBe('none')
  })
})

describe('the way to the admin API', () => {
  it.each([
    [[], {}, 'Set --url or SLUICE_ADMIN_URL'],
    [['--url', 'host'], {}, 'must be https://host/path'],
    [['--url', 'https://ada:hunter2@host/limits'], {}, 'without user and password'],
    [['--url', 'http://127.0.0.1:1/limits'], {}, '127.0.0.1:1 does not answer: '],
    [['--url', 'http://127.0.0.1:1'], { SLUICE_ADMIN_TOKEN: 'hunter2 b' }, 'one word'],
    [['--interval', '10ms', '--url', 'http://127.0.0.1:1'], {}, '--interval must be 1s or more'],
    [['--by', 'size'], {}, 'Allowed choices are denied, asked, cost'],
  ])('is wrong: %j', async (args, env, message) => {
    const { exitCode, stderr } = await runSluice(['top', ...args], { env })
    expect(exitCode).toBeGreaterThan(1)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('hunter2')
  })

  it('takes the address of the mount, of its page, and of its API', async () => {
    const { url, sluice } = await startFleet()
    for (const address of [url, `${url}/`, `${url}/api/v1`, `${url}/api/v1/`]) {
      expect((await sluice(['top', '--url', address])).exitCode).toBe(0)
    }
  })

  it('never sends a token elsewhere, and warns without TLS', async () => {
    const asked: string[] = []
    const origin = await serve((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization}`)
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    const url = `${origin.replace('127.0.0.1', '0.0.0.0')}/limits`
    const env = { SLUICE_ADMIN_TOKEN: 'secret' }
    const { stderr } = await runSluice(['top', '--url', url], { env })
    expect(asked).toEqual(['/limits/api/v1/live Bearer secret'])
    expect(stderr).toContain('warning: the token is sent to 0.0.0.0')
    expect(stderr).toContain('It redirects to /elsewhere')
  })

  const foreign = "did not answer like Sluice's admin API"
  const [none, shown] = ['{"detail":"no metrics\\u001b[2J here"}', 'no metrics\\u{1b}[2J here\n']

  it.each([
    ['a page', 200, 'text/html', '<html>', foreign],
    ['another API', 200, 'application/json', '{"live": true}', foreign],
    ['an API without metrics', 404, 'application/problem+json', none, `error: ${shown}`],
  ])('leads to %s', async (_, status, type, body, message) => {
    const url = await serve((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(body)
    })
    const { exitCode, stderr } = await runSluice(['top', '--url', url])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)])
  })

  it('shows no limit while the store is away', async () => {
    const state = { policy: 'burst', isPenalty: false, mode: 'enforce', denied: { '1m': 2 } }
    const away = { digest: 'digest', found: true, isAway: true, policies: [state] }
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(away))
    })
    const { stdout } = await runSluice(['inspect', 'user ada', '--url', url])
    expect(stdout).toMatch(/^burst +unknown +– +– +– +2 \/ – \/ –$/m)
  })

  it('does not read an endless response', async () => {
    const chunk = Buffer.alloc(1_000_000, ' ')
    let sent = 0
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const send = () => {
        while (!response.destroyed && response.write(chunk)) sent += 1
      }
      response.on('drain', send)
      send()
    })
    const { exitCode, stderr } = await runSluice(['top', '--url', url])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('did not answer like')])
    expect(sent).toBeLessThan(1_000)
  })
})

describe('top on a terminal', () => {
  it('refreshes until Ctrl-C, fits the screen even in an outage, and restores the cursor', async () => {
    const { url, visit } = await startFleet()
    for (const user of ['ada', 'bob', 'cy', 'dan']) await visit(user)
    const stop = new AbortController()
    const rows = 10
    const { written, ...outputs } = captured({ isTTY: true, columns: 50, rows })
    // The API of a fleet whose store is away, until the API is away too.
    const SLUICE_ADMIN_URL = await serve(async (request, response) => {
      if (written.stdout.includes('requests/s')) return void response.destroy()
      const { authorization = '' } = request.headers
      const answer = await fetch(url + request.url, { headers: { authorization } })
      const text = (await answer.text()).replace('"fallback":false', '"fallback":true')
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
    })
    const running = runCli(['top', '--interval', '1s', '--by', 'asked'], {
      ...{ stdin: Readable.from([]), ...outputs, signal: stop.signal },
      env: { SLUICE_ADMIN_URL, SLUICE_ADMIN_TOKEN: 'token-of-viewer' },
    })
    await until('the table is old', () => written.stdout.includes('The table is'))
    stop.abort()
    expect(await running).toBe(0)
    const shown = written.stdout
    expect(shown).toMatch(/burst +[\w-]{7}…[\w-]{7}\n/)
    expect(shown).toContain('failure modes decide.')
    expect(shown).toContain('and 11 more\n')
    const heights = shown.split('\u001b[H').map((screen) => screen.split('\n').length)
    expect(Math.max(...heights)).toBeLessThanOrEqual(rows)
    expect(shown.startsWith('\u001b[?25l')).toBe(true)
    expect(shown.endsWith('\u001b[?25h')).toBe(true)
  })
})
