import { CliError } from '../terminal/exit-codes.ts'
import { cloudFrontFormat } from './cloudfront-format.ts'
import { durationUnits, type FieldMap, jsonFormat } from './json-format.ts'
import type { LogFormat } from './log-format.ts'
import { textFormat } from './text-format.ts'

/** Command-line options for reading lines. */
export interface FormatOptions {
  /** A name, an nginx pattern, or `auto`. */
  readonly format: string
  /** The field map of `--format json`: `time=ts,ip=client.ip`. */
  readonly fields?: string
  /** @default the format's */
  readonly time?: 'start' | 'end'
}

const common = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'
const combined = `${common} "$http_referer" "$http_user_agent"`
/** Its default, `common`, has more values than other `common` formats. */
const traefikCommon = `${combined} $request_count "$router" "$server_url" \${request_ms}ms`
const alb =
  '$type $time $elb $remote_addr $target $request_processing_time $target_processing_time ' +
  '$response_processing_time $status $target_status $received_bytes $sent_bytes "$request" ' +
  '"$http_user_agent" $ssl_cipher $ssl_protocol $target_group "$trace_id" "$domain_name" ' +
  '"$certificate" $rule $request_creation_time $rest'

const fieldMaps: Readonly<Record<string, FieldMap>> = {
  'pino-http': {
    time: 'time',
    ip: ['req.remoteAddress', 'req.ip'],
    method: 'req.method',
    path: 'req.url',
    status: 'res.statusCode',
    duration: 'responseTime',
    headers: 'req.headers',
  },
  caddy: {
    time: 'ts',
    ip: ['request.remote_ip', 'request.remote_addr'],
    method: 'request.method',
    path: 'request.uri',
    status: 'status',
    duration: 'duration',
    durationUnit: 's',
    headers: 'request.headers',
  },
  traefik: {
    time: ['StartUTC', 'StartLocal'],
    ip: ['ClientHost', 'ClientAddr'],
    method: 'RequestMethod',
    path: 'RequestPath',
    status: 'DownstreamStatus',
    duration: 'Duration',
    durationUnit: 'ns',
    headerPrefix: 'request_',
    timeIs: 'start',
  },
  envoy: {
    time: 'start_time',
    ip: ['downstream_remote_address', 'downstream_direct_remote_address'],
    method: ['method', ':method'],
    path: ['path', 'x-envoy-origin-path', ':path'],
    status: 'response_code',
    duration: 'duration',
    timeIs: 'start',
  },
}

/** All formats by name. A format may remember lines, so each file has its own. */
const makers: Readonly<Record<string, () => LogFormat>> = {
  combined: () => textFormat(combined, { name: 'combined' }),
  'vhost-combined': () => textFormat(`$host ${combined}`, { name: 'vhost-combined' }),
  'traefik-common': () => textFormat(traefikCommon, { name: 'traefik-common', timeIs: 'start' }),
  common: () => textFormat(common, { name: 'common' }),
  alb: () => textFormat(alb, { name: 'alb', timeIs: 'start' }),
  cloudfront: cloudFrontFormat,
  ...Object.fromEntries(
    Object.entries(fieldMaps).map(([name, map]) => [name, () => jsonFormat(name, map)]),
  ),
}

const formatNames: readonly string[] = Object.keys(makers)

/**
 * Returns the format of a file.
 * @param sample its first lines, for `auto`
 * @throws CliError if the format is unknown, or no format can read the sample
 */
export function chooseFormat(
  { format, fields, time }: FormatOptions,
  sample: readonly string[],
): LogFormat {
  const chosen = formatOf(format, fields, sample)
  return time === undefined ? chosen : { ...chosen, timeIs: time }
}

function formatOf(name: string, fields: string | undefined, sample: readonly string[]): LogFormat {
  if (fields !== undefined || name === 'json') return jsonFormat('json', fieldMapOf(fields))
  if (name.includes('$')) return textFormat(name, { name: 'nginx' })
  if (name === 'auto') return detected(sample)
  const make = Object.hasOwn(makers, name) ? makers[name] : undefined
  if (make) return make()
  throw new CliError(
    `--format ${name} is unknown: use auto, json with --fields, ${formatNames.join(', ')}, or the log_format of nginx with its $variables`,
  )
}

/** Returns the first format that reads most of the lines. Formats with more values come first. */
function detected(sample: readonly string[]): LogFormat {
  let best: { readonly name: string; readonly read: number } | undefined
  for (const name of formatNames) {
    const format = makers[name]?.()
    const read = sample.filter((line) => typeof format?.read(line) === 'object').length
    if (read > (best?.read ?? 0)) best = { name, read }
  }
  const made = best && makers[best.name]?.()
  if (made) return made
  if (sample.length === 0) return textFormat(combined, { name: 'combined' })
  throw new CliError(
    `none of the formats ${formatNames.join(', ')} can read the log; pass the log_format of nginx, as in --format '$remote_addr [$time_local] "$request" $status', or the fields of JSON lines, as in --format json --fields time=ts,ip=client.ip,method=method,path=url`,
  )
}

const mapFields = ['time', 'ip', 'method', 'path', 'status', 'duration', 'headers'] as const
const needed: readonly string[] = ['time', 'ip', 'method', 'path']

/** Parses `time=ts,ip=client.ip,method=method,path=url,duration=took:s`. */
function fieldMapOf(text: string | undefined): FieldMap {
  const entries = new Map<string, string>()
  for (const part of text?.split(',') ?? []) {
    const [field = '', path = ''] = part.split('=', 2).map((side) => side.trim())
    const known: readonly string[] = mapFields
    if (!known.includes(field) || path === '') {
      throw new CliError(
        `--fields has '${part}', but takes name=path with one of the names ${mapFields.join(', ')}`,
      )
    }
    entries.set(field, path)
  }
  const missing = needed.filter((field) => !entries.has(field))
  if (missing.length > 0) {
    throw new CliError(
      `--format json needs --fields with ${missing.join(', ')}, as in --fields time=ts,ip=client.ip,method=method,path=url,status=code,duration=took:s`,
    )
  }
  const at = (field: string): string => entries.get(field) ?? ''
  const [duration = '', durationUnit = 'ms'] = at('duration').split(':')
  if (!Object.hasOwn(durationUnits, durationUnit)) {
    throw new CliError(
      `--fields duration has the unit '${durationUnit}', but takes ${Object.keys(durationUnits).join(', ')}`,
    )
  }
  return {
    ...{ time: at('time'), ip: at('ip'), method: at('method'), path: at('path') },
    ...{ status: at('status'), duration, durationUnit },
    ...(entries.has('headers') && { headers: at('headers') }),
  }
}
