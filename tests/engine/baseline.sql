-- A dump of a database at the baseline, with two rows or more in every table. It is frozen: the
-- databases of the first release are like it. Made by pg_dump 15 with --no-owner, --no-privileges and
-- --column-inserts, less its settings and comments.

CREATE TYPE public.role AS ENUM (
    'viewer',
    'editor',
    'project_admin',
    'org_admin'
);

CREATE TYPE public.verdict AS ENUM (
    'covered',
    'covered_late',
    'withheld',
    'missed'
);

CREATE FUNCTION public.at(microseconds bigint) RETURNS timestamp with time zone
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN ('1970-01-01 00:00:00+00'::timestamp with time zone + ((microseconds)::double precision * '00:00:00.000001'::interval));

CREATE FUNCTION public.or_conflict(holds boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
  if not holds then
    raise exception 'a statement met what another wrote' using errcode = '40001';
  end if;
  return true;
end
$$;

CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;

CREATE FUNCTION public.refuse_to_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception 'rows of % are only ever added', tg_table_name using errcode = 'P0001';
end $$;

CREATE TABLE public.agent_tokens (
    id integer NOT NULL,
    uid uuid NOT NULL,
    name text NOT NULL,
    region text NOT NULL,
    token_hash bytea NOT NULL,
    created_by integer,
    created_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone
);

ALTER TABLE public.agent_tokens ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agent_tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.agents (
    credential text NOT NULL,
    region text NOT NULL,
    instance uuid NOT NULL,
    name text NOT NULL,
    version text DEFAULT ''::text NOT NULL,
    workflow_kinds text[] DEFAULT '{}'::text[] NOT NULL,
    carrier integer DEFAULT 1 NOT NULL,
    holder uuid NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL
)
WITH (fillfactor='60');

CREATE TABLE public.api_tokens (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer,
    name text NOT NULL,
    role public.role NOT NULL,
    actions text[],
    token_hash bytea NOT NULL,
    created_by integer,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT api_tokens_check CHECK (((role <> 'org_admin'::public.role) OR (project IS NULL)))
);

ALTER TABLE public.api_tokens ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.audit_entries (
    org integer NOT NULL,
    id bigint NOT NULL,
    uid uuid NOT NULL,
    actor_user integer,
    actor_label text NOT NULL,
    via_token boolean NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

ALTER TABLE public.audit_entries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_entries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.bundle_files (
    provider text NOT NULL,
    path text NOT NULL,
    organization text DEFAULT ''::text NOT NULL,
    project_slug text DEFAULT ''::text NOT NULL,
    project uuid,
    digest bytea NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    status text NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    scanned_at timestamp with time zone NOT NULL,
    applied_at timestamp with time zone,
    CONSTRAINT bundle_files_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'applied'::text, 'rejected'::text, 'error'::text, 'degraded'::text])))
);

CREATE TABLE public.bundle_providers (
    provider text NOT NULL,
    scope text NOT NULL,
    holder uuid NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    last_scan timestamp with time zone,
    last_success timestamp with time zone,
    last_error text DEFAULT ''::text NOT NULL
);

CREATE TABLE public.burn_rules (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    service integer,
    monitor integer,
    "window" text NOT NULL,
    place integer NOT NULL,
    long_seconds integer NOT NULL,
    short_seconds integer NOT NULL,
    threshold numeric(12,4) NOT NULL,
    severity text NOT NULL,
    firing boolean DEFAULT false NOT NULL,
    firing_since timestamp with time zone,
    last_verdict text,
    evaluated_at timestamp with time zone,
    lease_until timestamp with time zone,
    notified_at timestamp with time zone,
    CONSTRAINT burn_rules_check CHECK ((num_nonnulls(service, monitor) = 1)),
    CONSTRAINT burn_rules_last_verdict_check CHECK ((last_verdict = ANY (ARRAY['firing'::text, 'clear'::text, 'unevaluated'::text]))),
    CONSTRAINT burn_rules_severity_check CHECK ((severity = ANY (ARRAY['page'::text, 'ticket'::text])))
);

ALTER TABLE public.burn_rules ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.burn_rules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.canary_runs (
    region text NOT NULL,
    slot integer NOT NULL,
    org integer NOT NULL,
    monitor integer NOT NULL,
    due_at timestamp with time zone,
    holder uuid NOT NULL,
    lease_until timestamp with time zone,
    began_at timestamp with time zone NOT NULL,
    CONSTRAINT canary_runs_slot_check CHECK ((slot > 0))
);

CREATE TABLE public.change_phases (
    org integer NOT NULL,
    change bigint NOT NULL,
    uid uuid NOT NULL,
    phase text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    ref text NOT NULL,
    url text NOT NULL,
    decision uuid,
    actor_label text NOT NULL,
    actor_user uuid,
    via_token boolean NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT change_phases_phase_check CHECK ((phase = ANY (ARRAY['started'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);

CREATE TABLE public.changes (
    org integer NOT NULL,
    id bigint NOT NULL,
    service integer NOT NULL,
    source text NOT NULL,
    external_id text NOT NULL,
    kind text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    latest_at timestamp with time zone NOT NULL,
    CONSTRAINT changes_kind_check CHECK ((kind = ANY (ARRAY['deploy'::text, 'rollback'::text, 'flag'::text])))
);

ALTER TABLE public.changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.check_tests (
    uid uuid NOT NULL,
    region text NOT NULL,
    document jsonb,
    document_ciphertext bytea,
    created_at timestamp with time zone NOT NULL,
    claim_until timestamp with time zone NOT NULL,
    holder uuid,
    answer jsonb,
    CONSTRAINT check_tests_check CHECK (((document IS NULL) <> (document_ciphertext IS NULL)))
);

CREATE TABLE public.composite_terms (
    org integer NOT NULL,
    monitor integer NOT NULL,
    from_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    mode text NOT NULL,
    quorum integer NOT NULL,
    children integer[] NOT NULL,
    CONSTRAINT composite_terms_mode_check CHECK ((mode = ANY (ARRAY['all'::text, 'any'::text, 'quorum'::text])))
);

CREATE TABLE public.composite_wakeups (
    org integer NOT NULL,
    monitor integer NOT NULL,
    due_at timestamp with time zone NOT NULL
);

CREATE TABLE public.deleted_monitor_terms (
    org integer NOT NULL,
    monitor integer NOT NULL,
    from_at timestamp with time zone NOT NULL,
    shard integer NOT NULL,
    anchor timestamp with time zone NOT NULL,
    interval_seconds integer NOT NULL,
    timeout_seconds integer NOT NULL,
    grace_seconds integer NOT NULL,
    enabled boolean NOT NULL
);

CREATE TABLE public.deleted_monitors (
    org integer NOT NULL,
    id integer NOT NULL,
    project integer NOT NULL,
    type text NOT NULL,
    deleted_at timestamp with time zone NOT NULL
);

CREATE TABLE public.destinations (
    org integer NOT NULL,
    id integer NOT NULL,
    webhook integer,
    channel integer,
    page integer,
    subscriber integer,
    failures integer DEFAULT 0 NOT NULL,
    backoff_until timestamp with time zone,
    CONSTRAINT destinations_check CHECK ((num_nonnulls(webhook, channel, page, subscriber) = 1))
);

ALTER TABLE public.destinations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.destinations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.escalation_policies (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    name text NOT NULL,
    repeat_last boolean NOT NULL,
    after_seconds integer[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.escalation_policies ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.escalation_policies_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.escalation_targets (
    org integer NOT NULL,
    policy integer NOT NULL,
    step integer NOT NULL,
    place integer NOT NULL,
    channel integer,
    schedule integer,
    CONSTRAINT escalation_targets_check CHECK ((num_nonnulls(channel, schedule) = 1))
);

CREATE TABLE public.expected_runs (
    org integer NOT NULL,
    monitor integer NOT NULL,
    due_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone NOT NULL,
    verdict public.verdict NOT NULL,
    reason text
)
PARTITION BY RANGE (due_at);

CREATE TABLE public.expected_runs_20260105 (
    org integer NOT NULL,
    monitor integer NOT NULL,
    due_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone NOT NULL,
    verdict public.verdict NOT NULL,
    reason text
);

CREATE TABLE public.gate_decisions (
    org integer NOT NULL,
    project integer NOT NULL,
    service integer NOT NULL,
    uid uuid NOT NULL,
    evaluated_at timestamp with time zone NOT NULL,
    service_uid uuid NOT NULL,
    service_slug text NOT NULL,
    service_name text NOT NULL,
    state text NOT NULL,
    action text,
    unoverridden_action text,
    reasons json NOT NULL,
    policy_revision integer,
    override_uid uuid,
    actor_label text NOT NULL,
    actor_user uuid,
    via_token boolean NOT NULL,
    evidence json NOT NULL,
    CONSTRAINT gate_decisions_action_check CHECK ((action = ANY (ARRAY['ALLOW'::text, 'WARN'::text, 'BLOCK'::text]))),
    CONSTRAINT gate_decisions_check CHECK (((state = 'NOT_CONFIGURED'::text) = (action IS NULL))),
    CONSTRAINT gate_decisions_state_check CHECK ((state = ANY (ARRAY['ALLOW'::text, 'WARN'::text, 'BLOCK'::text, 'UNKNOWN'::text, 'NOT_CONFIGURED'::text]))),
    CONSTRAINT gate_decisions_unoverridden_action_check CHECK ((unoverridden_action = ANY (ARRAY['ALLOW'::text, 'WARN'::text, 'BLOCK'::text])))
)
PARTITION BY RANGE (evaluated_at);

CREATE TABLE public.gate_decisions_20260105 (
    org integer NOT NULL,
    project integer NOT NULL,
    service integer NOT NULL,
    uid uuid NOT NULL,
    evaluated_at timestamp with time zone NOT NULL,
    service_uid uuid NOT NULL,
    service_slug text NOT NULL,
    service_name text NOT NULL,
    state text NOT NULL,
    action text,
    unoverridden_action text,
    reasons json NOT NULL,
    policy_revision integer,
    override_uid uuid,
    actor_label text NOT NULL,
    actor_user uuid,
    via_token boolean NOT NULL,
    evidence json NOT NULL,
    CONSTRAINT gate_decisions_action_check CHECK ((action = ANY (ARRAY['ALLOW'::text, 'WARN'::text, 'BLOCK'::text]))),
    CONSTRAINT gate_decisions_check CHECK (((state = 'NOT_CONFIGURED'::text) = (action IS NULL))),
    CONSTRAINT gate_decisions_state_check CHECK ((state = ANY (ARRAY['ALLOW'::text, 'WARN'::text, 'BLOCK'::text, 'UNKNOWN'::text, 'NOT_CONFIGURED'::text]))),
    CONSTRAINT gate_decisions_unoverridden_action_check CHECK ((unoverridden_action = ANY (ARRAY['ALLOW'::text, 'WARN'::text, 'BLOCK'::text])))
);

CREATE TABLE public.gate_overrides (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    service integer NOT NULL,
    policy_source text NOT NULL,
    policy_revision integer NOT NULL,
    reason text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    actor_label text NOT NULL,
    actor_user uuid,
    via_token boolean NOT NULL,
    revoked_at timestamp with time zone,
    revoked_reason text,
    revoked_by_label text,
    revoked_by_user uuid,
    revoked_via_token boolean,
    CONSTRAINT gate_overrides_check CHECK (((revoked_at IS NULL) = (revoked_reason IS NULL))),
    CONSTRAINT gate_overrides_check1 CHECK ((expires_at > created_at)),
    CONSTRAINT gate_overrides_policy_source_check CHECK ((policy_source = ANY (ARRAY['service'::text, 'project'::text]))),
    CONSTRAINT gate_overrides_revoked_reason_check CHECK ((revoked_reason = ANY (ARRAY['manual'::text, 'policy_changed'::text, 'policy_deleted'::text])))
);

ALTER TABLE public.gate_overrides ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.gate_overrides_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.gate_policies (
    org integer NOT NULL,
    id integer NOT NULL,
    project integer NOT NULL,
    service integer,
    revision integer NOT NULL,
    schema_version integer NOT NULL,
    window_mode text NOT NULL,
    "window" text,
    clauses json NOT NULL,
    budget_consumed_percent integer NOT NULL,
    max_seal_lag_seconds integer NOT NULL,
    unknown_behavior text NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    author_label text NOT NULL,
    CONSTRAINT gate_policies_check CHECK (((window_mode = 'one'::text) = ("window" IS NOT NULL))),
    CONSTRAINT gate_policies_check1 CHECK (((schema_version = 2) OR (window_mode = 'one'::text))),
    CONSTRAINT gate_policies_schema_version_check CHECK ((schema_version = ANY (ARRAY[1, 2]))),
    CONSTRAINT gate_policies_unknown_behavior_check CHECK ((unknown_behavior = ANY (ARRAY['warn'::text, 'block'::text]))),
    CONSTRAINT gate_policies_window_check CHECK (("window" = ANY (ARRAY['24h'::text, '7d'::text, '30d'::text, '90d'::text]))),
    CONSTRAINT gate_policies_window_mode_check CHECK ((window_mode = ANY (ARRAY['one'::text, 'all'::text])))
);

ALTER TABLE public.gate_policies ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.gate_policies_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.heartbeats (
    org integer NOT NULL,
    monitor integer NOT NULL,
    ts timestamp with time zone NOT NULL,
    latency_ms integer NOT NULL,
    code integer,
    dns_us integer,
    connect_us integer,
    tls_us integer,
    first_byte_us integer,
    up boolean NOT NULL,
    msg text
)
PARTITION BY RANGE (ts);

CREATE TABLE public.heartbeats_20260105 (
    org integer NOT NULL,
    monitor integer NOT NULL,
    ts timestamp with time zone NOT NULL,
    latency_ms integer NOT NULL,
    code integer,
    dns_us integer,
    connect_us integer,
    tls_us integer,
    first_byte_us integer,
    up boolean NOT NULL,
    msg text
);

CREATE TABLE public.incident_pages (
    org integer NOT NULL,
    incident integer NOT NULL,
    id integer NOT NULL,
    step integer NOT NULL,
    at timestamp with time zone NOT NULL,
    paged text[] NOT NULL,
    unreachable text[] NOT NULL
);

ALTER TABLE public.incident_pages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.incident_pages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.incident_updates (
    org integer NOT NULL,
    incident integer NOT NULL,
    seq integer NOT NULL,
    uid uuid NOT NULL,
    status text,
    body text NOT NULL,
    public boolean NOT NULL,
    author integer,
    author_label text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.incidents (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    monitor integer,
    service integer,
    external_key text,
    seq integer NOT NULL,
    title text NOT NULL,
    status text NOT NULL,
    impact text NOT NULL,
    source text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    resolved_at timestamp with time zone,
    acknowledged_at timestamp with time zone,
    acknowledged_by integer,
    acknowledged_label text DEFAULT ''::text NOT NULL,
    escalation_policy integer,
    escalation_step integer DEFAULT 0 NOT NULL,
    last_escalated_at timestamp with time zone,
    escalate_at timestamp with time zone,
    escalation_started_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT incidents_check CHECK (((status = 'resolved'::text) = (resolved_at IS NOT NULL))),
    CONSTRAINT incidents_check1 CHECK ((num_nonnulls(monitor, service) <= 1)),
    CONSTRAINT incidents_impact_check CHECK ((impact = ANY (ARRAY['none'::text, 'minor'::text, 'major'::text, 'critical'::text]))),
    CONSTRAINT incidents_source_check CHECK ((source = ANY (ARRAY['manual'::text, 'api'::text, 'auto'::text]))),
    CONSTRAINT incidents_status_check CHECK ((status = ANY (ARRAY['investigating'::text, 'identified'::text, 'monitoring'::text, 'resolved'::text])))
);

ALTER TABLE public.incidents ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.incidents_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.jobs (
    org integer NOT NULL,
    id bigint NOT NULL,
    uid uuid NOT NULL,
    shard integer NOT NULL,
    monitor integer NOT NULL,
    revision integer DEFAULT 0 NOT NULL,
    reason text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    claim_until timestamp with time zone NOT NULL,
    holder uuid,
    lease_until timestamp with time zone,
    CONSTRAINT jobs_reason_check CHECK ((reason = ANY (ARRAY['confirm'::text, 'extra'::text, 'asked'::text, 'onset'::text])))
);

ALTER TABLE public.jobs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.monitors (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    shard integer NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    type text NOT NULL,
    target text DEFAULT ''::text NOT NULL,
    method text DEFAULT 'GET'::text NOT NULL,
    interval_seconds integer NOT NULL,
    timeout_seconds integer NOT NULL,
    retries integer DEFAULT 0 NOT NULL,
    failure_threshold integer DEFAULT 1 NOT NULL,
    confirm_interval_seconds integer DEFAULT 0 NOT NULL,
    renotify_seconds integer DEFAULT 0 NOT NULL,
    grace_seconds integer DEFAULT 60 NOT NULL,
    conditions text[] DEFAULT '{}'::text[] NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    depends_on integer[] DEFAULT '{}'::integer[] NOT NULL,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    config_ciphertext bytea,
    enabled boolean DEFAULT true NOT NULL,
    auto_incident boolean DEFAULT true NOT NULL,
    escalation_policy integer,
    push_token_hash bytea,
    push_token_ciphertext bytea,
    revision integer DEFAULT 1 NOT NULL,
    managed_by text DEFAULT ''::text NOT NULL,
    bundle_uid text,
    bundle_path text DEFAULT ''::text NOT NULL,
    orphaned_at timestamp with time zone,
    superseded_by integer,
    retired_at timestamp with time zone,
    created_by integer,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT monitors_retired_are_paused CHECK (((retired_at IS NULL) OR (NOT enabled)))
);

CREATE VIEW public.known_monitors AS
 SELECT monitors.org,
    monitors.id,
    monitors.project,
    monitors.shard,
    monitors.type
   FROM public.monitors
UNION ALL
 SELECT deleted_monitors.org,
    deleted_monitors.id,
    deleted_monitors.project,
    NULL::integer AS shard,
    deleted_monitors.type
   FROM public.deleted_monitors;

CREATE TABLE public.monitor_terms (
    org integer NOT NULL,
    monitor integer NOT NULL,
    from_at timestamp with time zone NOT NULL,
    shard integer NOT NULL,
    anchor timestamp with time zone NOT NULL,
    interval_seconds integer NOT NULL,
    timeout_seconds integer NOT NULL,
    grace_seconds integer NOT NULL,
    enabled boolean NOT NULL
);

CREATE VIEW public.known_terms AS
 SELECT monitor_terms.org,
    monitor_terms.monitor,
    monitor_terms.from_at,
    monitor_terms.shard,
    monitor_terms.anchor,
    monitor_terms.interval_seconds,
    monitor_terms.timeout_seconds,
    monitor_terms.grace_seconds,
    monitor_terms.enabled
   FROM public.monitor_terms
UNION ALL
 SELECT deleted_monitor_terms.org,
    deleted_monitor_terms.monitor,
    deleted_monitor_terms.from_at,
    deleted_monitor_terms.shard,
    deleted_monitor_terms.anchor,
    deleted_monitor_terms.interval_seconds,
    deleted_monitor_terms.timeout_seconds,
    deleted_monitor_terms.grace_seconds,
    deleted_monitor_terms.enabled
   FROM public.deleted_monitor_terms;

CREATE TABLE public.maintenance_previews (
    org integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    mutation text NOT NULL,
    maintenance integer,
    monitor integer,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    approximate boolean DEFAULT false NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT maintenance_previews_mutation_check CHECK ((mutation = ANY (ARRAY['create'::text, 'annul'::text])))
);

CREATE TABLE public.maintenance_series (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    monitor integer,
    rrule text NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    duration_seconds integer NOT NULL,
    timezone text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    generated_through timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL
);

ALTER TABLE public.maintenance_series ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.maintenance_series_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.maintenances (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    monitor integer,
    series integer,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    archived_at timestamp with time zone,
    cancel_effective_at timestamp with time zone,
    resumed_at timestamp with time zone,
    CONSTRAINT maintenances_check CHECK ((ends_at > starts_at))
);

ALTER TABLE public.maintenances ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.maintenances_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.memberships (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    user_id integer NOT NULL,
    project integer,
    role public.role NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT memberships_check CHECK (((role <> 'org_admin'::public.role) OR (project IS NULL)))
);

ALTER TABLE public.memberships ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.memberships_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.monitor_channels (
    org integer NOT NULL,
    monitor integer NOT NULL,
    channel integer NOT NULL
);

CREATE TABLE public.monitor_days (
    org integer NOT NULL,
    monitor integer NOT NULL,
    day timestamp with time zone NOT NULL,
    good_us bigint NOT NULL,
    bad_us bigint NOT NULL,
    unknown_us bigint NOT NULL,
    excluded_us bigint NOT NULL,
    up integer NOT NULL,
    total integer NOT NULL
);

CREATE TABLE public.monitor_hours (
    org integer NOT NULL,
    monitor integer NOT NULL,
    hour timestamp with time zone NOT NULL,
    good_us bigint NOT NULL,
    bad_us bigint NOT NULL,
    unknown_us bigint NOT NULL,
    excluded_us bigint NOT NULL,
    up integer NOT NULL,
    total integer NOT NULL
);

CREATE TABLE public.monitor_states (
    org integer NOT NULL,
    monitor integer NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    since timestamp with time zone NOT NULL,
    silent_since timestamp with time zone,
    CONSTRAINT monitor_states_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'up'::text, 'down'::text])))
)
WITH (fillfactor='60');

CREATE TABLE public.monitor_targets (
    org integer NOT NULL,
    monitor integer NOT NULL,
    "window" text NOT NULL,
    uid uuid NOT NULL,
    objective integer NOT NULL,
    burn_enabled boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT monitor_targets_window_check CHECK (("window" = ANY (ARRAY['24h'::text, '7d'::text, '30d'::text, '90d'::text])))
);

ALTER TABLE public.monitors ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.monitors_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.notification_channels (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    config jsonb NOT NULL,
    config_ciphertext bytea,
    enabled boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.notification_channels ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.notification_channels_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.notification_threads (
    org integer NOT NULL,
    thread uuid NOT NULL,
    destination integer NOT NULL,
    external_id text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.oncall_overrides (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    schedule integer NOT NULL,
    channel integer NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT oncall_overrides_check CHECK ((ends_at > starts_at))
);

ALTER TABLE public.oncall_overrides ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.oncall_overrides_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.oncall_participants (
    org integer NOT NULL,
    schedule integer NOT NULL,
    place integer NOT NULL,
    channel integer NOT NULL
);

CREATE TABLE public.oncall_schedules (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    name text NOT NULL,
    anchor_at timestamp with time zone NOT NULL,
    shift_seconds integer NOT NULL,
    timezone text DEFAULT ''::text NOT NULL,
    calendar_token_hash bytea,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.oncall_schedules ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.oncall_schedules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.organizations (
    id integer NOT NULL,
    uid uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.organizations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.organizations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.outages (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    monitor integer NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    why text NOT NULL,
    announced_at timestamp with time zone,
    suppressed_by text,
    waits_since timestamp with time zone,
    waits_until timestamp with time zone,
    next_check_at timestamp with time zone,
    incident integer,
    notified_at timestamp with time zone,
    service integer,
    failed_open text,
    CONSTRAINT outages_suppressed_by_check CHECK ((suppressed_by = ANY (ARRAY['waiting'::text, 'rechecking'::text, 'dependency'::text, 'maintenance'::text, 'paused'::text, 'unknown'::text, 'delegated'::text, 'silenced'::text])))
);

ALTER TABLE public.outages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.outbox (
    org integer NOT NULL,
    id bigint NOT NULL,
    uid uuid NOT NULL,
    project integer,
    topic text NOT NULL,
    destination integer NOT NULL,
    stream uuid NOT NULL,
    thread uuid NOT NULL,
    event text NOT NULL,
    payload jsonb NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    ready boolean NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    lease uuid,
    enqueued_through integer DEFAULT 0 NOT NULL,
    last_error text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT outbox_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text]))),
    CONSTRAINT outbox_topic_check CHECK ((topic = ANY (ARRAY['incident_event'::text, 'monitor_transition'::text, 'subscription'::text])))
)
WITH (fillfactor='70');

ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.password_resets (
    user_id integer NOT NULL,
    token_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.postmortems (
    org integer NOT NULL,
    incident integer NOT NULL,
    uid uuid NOT NULL,
    body text NOT NULL,
    declaration_revision integer,
    author integer,
    author_label text NOT NULL,
    published_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.presences (
    process uuid NOT NULL,
    from_at timestamp with time zone NOT NULL,
    through_at timestamp with time zone NOT NULL,
    host text NOT NULL,
    roles text[] NOT NULL,
    regions text[] DEFAULT '{}'::text[] NOT NULL,
    version text NOT NULL,
    accepts_pushes boolean NOT NULL,
    ended boolean DEFAULT false NOT NULL
)
WITH (fillfactor='60');

CREATE TABLE public.probe_errors (
    org integer NOT NULL,
    monitor integer NOT NULL,
    reason text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT probe_errors_reason_check CHECK ((reason = ANY (ARRAY['carrier_too_old'::text, 'missing_reference'::text, 'decrypt_failed'::text])))
);

CREATE TABLE public.project_secrets (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    name text NOT NULL,
    value_ciphertext bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    rotated_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.project_secrets ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.project_secrets_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.project_targets (
    org integer NOT NULL,
    project integer NOT NULL,
    "window" text NOT NULL,
    uid uuid NOT NULL,
    objective integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT project_targets_window_check CHECK (("window" = ANY (ARRAY['24h'::text, '7d'::text, '30d'::text, '90d'::text])))
);

CREATE TABLE public.projects (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    graph_generation integer DEFAULT 0 NOT NULL,
    sla_report_weekly boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.projects ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.projects_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.push_events (
    org integer NOT NULL,
    monitor integer NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    msg text DEFAULT ''::text NOT NULL
);

CREATE TABLE public.recovery_codes (
    user_id integer NOT NULL,
    code_hash bytea NOT NULL
);

CREATE TABLE public.repairs (
    org integer NOT NULL,
    id bigint NOT NULL,
    shard integer NOT NULL,
    monitor integer NOT NULL,
    from_at timestamp with time zone NOT NULL,
    to_at timestamp with time zone NOT NULL,
    reason text DEFAULT 'late_result'::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    last_error text
);

ALTER TABLE public.repairs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.repairs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.reset_requests (
    address text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL
);

CREATE TABLE public.run_batches (
    id bigint NOT NULL,
    shard integer NOT NULL,
    kind text NOT NULL,
    orgs integer[] NOT NULL,
    monitors integer[] NOT NULL,
    due_ats timestamp with time zone[] NOT NULL,
    seal_ats timestamp with time zone[] NOT NULL,
    claim_untils timestamp with time zone[] NOT NULL,
    published boolean NOT NULL,
    first_due timestamp with time zone NOT NULL,
    claim_until timestamp with time zone NOT NULL,
    first_seal timestamp with time zone NOT NULL,
    last_seal timestamp with time zone NOT NULL,
    holder uuid,
    lease_until timestamp with time zone,
    claimed boolean DEFAULT false NOT NULL,
    CONSTRAINT run_batches_kind_check CHECK ((kind = ANY (ARRAY['run'::text, 'push'::text, 'composite'::text, 'canary'::text])))
);

ALTER TABLE public.run_batches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.run_batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.service_alerting (
    org integer NOT NULL,
    service integer NOT NULL,
    owns_paging boolean DEFAULT false NOT NULL,
    page_on text[] DEFAULT '{down}'::text[] NOT NULL,
    page_on_unknown boolean DEFAULT false NOT NULL,
    confirm_evaluations integer DEFAULT 2 NOT NULL,
    renotify_seconds integer DEFAULT 0 NOT NULL,
    generation integer DEFAULT 1 NOT NULL,
    edited_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    live_evaluated_at timestamp with time zone,
    live_generation integer,
    live_revision integer,
    live_state text,
    live_streak integer DEFAULT 0 NOT NULL,
    live_since timestamp with time zone,
    live_reason text,
    live_error text,
    live_lease_until timestamp with time zone,
    burn_evaluated_at timestamp with time zone,
    burn_generation integer,
    burn_reason text,
    burn_error text,
    burn_lease_until timestamp with time zone,
    CONSTRAINT service_alerting_live_state_check CHECK ((live_state = ANY (ARRAY['healthy'::text, 'degraded'::text, 'down'::text, 'unknown'::text, 'excluded'::text])))
)
WITH (fillfactor='60');

CREATE TABLE public.service_days (
    org integer NOT NULL,
    service integer NOT NULL,
    start timestamp with time zone NOT NULL,
    epoch integer NOT NULL,
    minutes integer NOT NULL,
    good_us bigint NOT NULL,
    bad_us bigint NOT NULL,
    unknown_us bigint NOT NULL,
    excluded_us bigint NOT NULL,
    healthy_us bigint NOT NULL,
    degraded_us bigint NOT NULL,
    down_us bigint NOT NULL,
    health_unknown_us bigint NOT NULL
);

CREATE TABLE public.service_dependencies (
    org integer NOT NULL,
    service integer NOT NULL,
    upstream integer NOT NULL,
    CONSTRAINT service_dependencies_check CHECK ((service <> upstream))
);

CREATE TABLE public.service_dependency_terms (
    org integer NOT NULL,
    service integer NOT NULL,
    upstream integer NOT NULL,
    from_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT service_dependency_terms_check CHECK ((until_at > from_at))
);

CREATE TABLE public.service_episodes (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    service integer NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    state text NOT NULL,
    incident integer,
    announced_at timestamp with time zone,
    notified_at timestamp with time zone,
    page_delivered_at timestamp with time zone
);

ALTER TABLE public.service_episodes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.service_episodes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.service_epochs (
    org integer NOT NULL,
    service integer NOT NULL,
    seq integer NOT NULL,
    uid uuid NOT NULL,
    revision integer NOT NULL,
    effective_at timestamp with time zone NOT NULL,
    snapshot_hash text NOT NULL,
    members integer NOT NULL
);

CREATE TABLE public.service_hours (
    org integer NOT NULL,
    service integer NOT NULL,
    start timestamp with time zone NOT NULL,
    epoch integer NOT NULL,
    minutes integer NOT NULL,
    good_us bigint NOT NULL,
    bad_us bigint NOT NULL,
    unknown_us bigint NOT NULL,
    excluded_us bigint NOT NULL,
    healthy_us bigint NOT NULL,
    degraded_us bigint NOT NULL,
    down_us bigint NOT NULL,
    health_unknown_us bigint NOT NULL
);

CREATE TABLE public.service_minutes (
    org integer NOT NULL,
    service integer NOT NULL,
    from_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone NOT NULL,
    epoch integer NOT NULL,
    good_us integer NOT NULL,
    bad_us integer NOT NULL,
    unknown_us integer NOT NULL,
    excluded_us integer NOT NULL,
    healthy_us integer NOT NULL,
    degraded_us integer NOT NULL,
    down_us integer NOT NULL,
    health_unknown_us integer NOT NULL,
    CONSTRAINT service_minutes_check CHECK ((until_at > from_at))
);

CREATE TABLE public.service_revisions (
    org integer NOT NULL,
    service integer NOT NULL,
    revision integer NOT NULL,
    uid uuid NOT NULL,
    effective_at timestamp with time zone NOT NULL,
    governs_from timestamp with time zone NOT NULL,
    monitors integer[] NOT NULL,
    sli integer[] NOT NULL,
    mode text NOT NULL,
    healthy_min integer NOT NULL,
    degraded_min integer NOT NULL,
    region_mode text NOT NULL,
    healthy_min_regions integer NOT NULL,
    degraded_min_regions integer NOT NULL,
    missing_data text NOT NULL,
    active_multiplier integer NOT NULL,
    active_floor_us bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by integer,
    created_by_label text NOT NULL,
    CONSTRAINT service_revisions_missing_data_check CHECK ((missing_data = ANY (ARRAY['unknown'::text, 'bad'::text, 'ignore'::text]))),
    CONSTRAINT service_revisions_mode_check CHECK ((mode = ANY (ARRAY['all'::text, 'any'::text, 'quorum'::text]))),
    CONSTRAINT service_revisions_region_mode_check CHECK ((region_mode = ANY (ARRAY['per_region'::text, 'any_region'::text, 'all_regions'::text])))
);

CREATE TABLE public.service_targets (
    org integer NOT NULL,
    service integer NOT NULL,
    "window" text NOT NULL,
    uid uuid NOT NULL,
    objective integer NOT NULL,
    burn_enabled boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT service_targets_window_check CHECK (("window" = ANY (ARRAY['24h'::text, '7d'::text, '30d'::text, '90d'::text])))
);

CREATE TABLE public.services (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    escalation_policy integer,
    oncall_schedule integer,
    managed_by text DEFAULT ''::text NOT NULL,
    bundle_uid text,
    bundle_path text DEFAULT ''::text NOT NULL,
    orphaned_at timestamp with time zone,
    materialization_start timestamp with time zone,
    sealed_through timestamp with time zone,
    backfill_from timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.services ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.services_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.sessions (
    token_hash bytea NOT NULL,
    uid uuid NOT NULL,
    user_id integer NOT NULL,
    client text DEFAULT ''::text NOT NULL,
    issuer text,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.settings (
    name text NOT NULL,
    uid uuid DEFAULT gen_random_uuid() NOT NULL,
    value jsonb NOT NULL,
    secret_ciphertext bytea,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.shards (
    id integer NOT NULL,
    org integer DEFAULT 0 NOT NULL,
    region text NOT NULL,
    reserved_through timestamp with time zone NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    sealed_through timestamp with time zone NOT NULL,
    settled_through timestamp with time zone NOT NULL,
    rolled_up_through timestamp with time zone NOT NULL
);

ALTER TABLE public.shards ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.shards_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.sign_on_flows (
    state_hash bytea NOT NULL,
    browser_hash bytea NOT NULL,
    issuer text NOT NULL,
    nonce text NOT NULL,
    verifier text NOT NULL,
    redirect text NOT NULL,
    link_user integer,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.status_changes (
    org integer NOT NULL,
    id bigint NOT NULL,
    monitor integer NOT NULL,
    at timestamp with time zone NOT NULL,
    old_status text NOT NULL,
    new_status text NOT NULL,
    committed_at timestamp with time zone NOT NULL
);

ALTER TABLE public.status_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.status_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.status_components (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    page integer NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    group_name text DEFAULT ''::text NOT NULL,
    "position" integer NOT NULL,
    source text NOT NULL,
    monitor integer,
    service integer,
    manual_status text,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT status_components_check CHECK (((monitor IS NULL) OR (source = 'monitor'::text))),
    CONSTRAINT status_components_check1 CHECK (((service IS NULL) OR (source = 'service'::text))),
    CONSTRAINT status_components_check2 CHECK (((source = 'manual'::text) = (manual_status IS NOT NULL))),
    CONSTRAINT status_components_manual_status_check CHECK ((manual_status = ANY (ARRAY['operational'::text, 'degraded'::text, 'partial_outage'::text, 'major_outage'::text, 'maintenance'::text, 'no_data'::text]))),
    CONSTRAINT status_components_source_check CHECK ((source = ANY (ARRAY['monitor'::text, 'service'::text, 'manual'::text])))
);

ALTER TABLE public.status_components ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.status_components_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.status_page_domains (
    domain text NOT NULL,
    org integer NOT NULL,
    page integer NOT NULL,
    CONSTRAINT status_page_domains_domain_check CHECK ((domain = lower(domain)))
);

CREATE TABLE public.status_pages (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer,
    slug text NOT NULL,
    title text NOT NULL,
    visibility text NOT NULL,
    token_hash bytea,
    token_ciphertext bytea,
    generation integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT status_pages_check CHECK (((visibility = 'unlisted'::text) = (token_hash IS NOT NULL))),
    CONSTRAINT status_pages_check1 CHECK (((token_hash IS NULL) = (token_ciphertext IS NULL))),
    CONSTRAINT status_pages_visibility_check CHECK ((visibility = ANY (ARRAY['listed'::text, 'unlisted'::text, 'internal'::text])))
);

ALTER TABLE public.status_pages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.status_pages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.subscribers (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    page integer NOT NULL,
    kind text NOT NULL,
    address text NOT NULL,
    address_key text NOT NULL,
    components uuid[],
    requested_components uuid[],
    requested_at timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone,
    bounces integer DEFAULT 0 NOT NULL,
    suspended_at timestamp with time zone,
    token_hash bytea NOT NULL,
    token_ciphertext bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT subscribers_kind_check CHECK ((kind = ANY (ARRAY['mail'::text, 'webhook'::text])))
);

ALTER TABLE public.subscribers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.subscribers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.subscription_requests (
    address_hash bytea NOT NULL,
    requested_at timestamp with time zone NOT NULL
);

CREATE TABLE public.user_identities (
    issuer text NOT NULL,
    subject text NOT NULL,
    user_id integer NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.users (
    id integer NOT NULL,
    uid uuid NOT NULL,
    email text NOT NULL,
    email_verified boolean DEFAULT true NOT NULL,
    display_name text DEFAULT ''::text NOT NULL,
    is_global_admin boolean DEFAULT false NOT NULL,
    password text,
    totp_ciphertext bytea,
    totp_enabled_at timestamp with time zone,
    totp_step bigint DEFAULT 0 NOT NULL,
    totp_wrong_at timestamp with time zone[] DEFAULT '{}'::timestamp with time zone[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    last_active_at timestamp with time zone,
    CONSTRAINT users_totp_check CHECK (((totp_enabled_at IS NULL) OR (totp_ciphertext IS NOT NULL)))
);

ALTER TABLE public.users ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhooks (
    org integer NOT NULL,
    id integer NOT NULL,
    uid uuid NOT NULL,
    project integer,
    url text NOT NULL,
    secret_ciphertext bytea NOT NULL,
    enabled boolean NOT NULL,
    created_by integer,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE public.webhooks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.webhooks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.expected_runs ATTACH PARTITION public.expected_runs_20260105 FOR VALUES FROM ('2026-01-05 00:00:00+00') TO ('2026-01-06 00:00:00+00');

ALTER TABLE ONLY public.gate_decisions ATTACH PARTITION public.gate_decisions_20260105 FOR VALUES FROM ('2026-01-05 00:00:00+00') TO ('2026-01-06 00:00:00+00');

ALTER TABLE ONLY public.heartbeats ATTACH PARTITION public.heartbeats_20260105 FOR VALUES FROM ('2026-01-05 00:00:00+00') TO ('2026-01-06 00:00:00+00');

INSERT INTO public.agent_tokens (id, uid, name, region, token_hash, created_by, created_at, revoked_at) OVERRIDING SYSTEM VALUE VALUES (1, 'c52dacd0-ce9f-7f61-1c3a-c6f597c6e172', 'name 1', 'region 1', '\x746f6b656e5f686173682031', 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.agent_tokens (id, uid, name, region, token_hash, created_by, created_at, revoked_at) OVERRIDING SYSTEM VALUE VALUES (2, 'e55280df-ee5d-f4be-e67f-a3b5fdb284d0', 'name 2', 'region 2', '\x746f6b656e5f686173682032', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.agents (credential, region, instance, name, version, workflow_kinds, carrier, holder, first_seen_at, last_seen_at) VALUES ('credential 1', 'region 1', '5f1a4ec8-1b0c-9e3c-33a8-c2aff0540609', 'name 1', 'version 1', '{"workflow_kinds 1"}', 1, '531e1181-7b25-15ce-a10b-cf13a6976974', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.agents (credential, region, instance, name, version, workflow_kinds, carrier, holder, first_seen_at, last_seen_at) VALUES ('credential 2', 'region 2', '9ef67eab-9551-ee30-e6e9-767daf9dc146', 'name 2', 'version 2', '{"workflow_kinds 2"}', 2, '00b97a2e-a873-6945-f6a1-8a22d96e4b7a', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.api_tokens (org, id, uid, project, name, role, actions, token_hash, created_by, created_at, last_used_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '2dc500b3-b102-a723-ab54-df3aa36667a6', 1, 'name 1', 'editor', '{"actions 1"}', '\x746f6b656e5f686173682031', 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.api_tokens (org, id, uid, project, name, role, actions, token_hash, created_by, created_at, last_used_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'd4c79589-0d83-7b70-c6e7-411b7bc3284f', 2, 'name 2', 'viewer', '{"actions 2"}', '\x746f6b656e5f686173682032', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.audit_entries (org, id, uid, actor_user, actor_label, via_token, action, target, created_at) OVERRIDING SYSTEM VALUE VALUES (0, 1, 'a49b0655-1052-1981-d070-e90c029a821a', 1, 'actor_label 1', true, 'action 1', 'target 1', '2026-01-05 00:07:00+00');
INSERT INTO public.audit_entries (org, id, uid, actor_user, actor_label, via_token, action, target, created_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '9f7bcce7-869f-3333-bd17-1d304591a6bb', 2, 'actor_label 2', false, 'action 2', 'target 2', '2026-01-05 00:14:00+00');

INSERT INTO public.bundle_files (provider, path, organization, project_slug, project, digest, generation, status, last_error, scanned_at, applied_at) VALUES ('git', 'path 1', 'organization 1', 'project_slug 1', 'dd99d777-2473-308f-e34d-2e9547648fdf', '\x6469676573742031', 1, 'applied', 'last_error 1', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.bundle_files (provider, path, organization, project_slug, project, digest, generation, status, last_error, scanned_at, applied_at) VALUES ('api', 'path 2', 'organization 2', 'project_slug 2', '0ccd7457-c845-ea1c-7a2a-59fdb0254dbb', '\x6469676573742032', 2, 'error', 'last_error 2', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.bundle_providers (provider, scope, holder, lease_until, last_scan, last_success, last_error) VALUES ('git', 'scope 1', 'a7fb19cc-6e86-c067-5264-659cda743d3f', '2026-01-05 01:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', 'last_error 1');
INSERT INTO public.bundle_providers (provider, scope, holder, lease_until, last_scan, last_success, last_error) VALUES ('api', 'scope 2', 'e67d6bd4-1084-825f-79c4-78b069960a3a', '2026-01-05 01:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', 'last_error 2');

INSERT INTO public.burn_rules (org, id, uid, service, monitor, "window", place, long_seconds, short_seconds, threshold, severity, firing, firing_since, last_verdict, evaluated_at, lease_until, notified_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'e0f9dd7f-8521-5140-7ec4-fecb27de0e76', 1, NULL, '30d', 1, 1, 1, 1.5000, 'page', true, '2026-01-05 00:07:00+00', 'firing', '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.burn_rules (org, id, uid, service, monitor, "window", place, long_seconds, short_seconds, threshold, severity, firing, firing_since, last_verdict, evaluated_at, lease_until, notified_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '3bc37b19-45fa-5b40-a0bf-ee0a6dbdbbb9', NULL, 2, '7d', 2, 2, 2, 2.5000, 'ticket', false, '2026-01-05 00:14:00+00', 'clear', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.canary_runs (region, slot, org, monitor, due_at, holder, lease_until, began_at) VALUES ('region 1', 1, 1, 1, '2026-01-05 00:07:00+00', '6f83394f-6934-b996-1e05-a56e6d5d7286', '2026-01-05 01:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.canary_runs (region, slot, org, monitor, due_at, holder, lease_until, began_at) VALUES ('region 2', 2, 2, 2, '2026-01-05 00:14:00+00', 'af70790c-9541-a206-e058-3d71c439b24c', '2026-01-05 01:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.change_phases (org, change, uid, phase, occurred_at, ref, url, decision, actor_label, actor_user, via_token, recorded_at) VALUES (1, 1, '3c215ecd-0cd2-d705-8d04-76c5b1264b8c', 'started', '2026-01-05 00:07:00+00', 'ref 1', 'url 1', '025121a9-062c-d5a3-dc22-77de46aa5548', 'actor_label 1', '23191b2f-de87-ce05-496c-beb1f6cea0e1', true, '2026-01-05 00:07:00+00');
INSERT INTO public.change_phases (org, change, uid, phase, occurred_at, ref, url, decision, actor_label, actor_user, via_token, recorded_at) VALUES (2, 2, '4ee48c19-0f91-99d3-4f7e-05c3b70d24a6', 'succeeded', '2026-01-05 00:14:00+00', 'ref 2', 'url 2', 'f8b98918-bfa1-a752-8f2d-dae8267dcde9', 'actor_label 2', '8da1e73a-123a-a1c7-6d6d-3c4ccfe0f92f', false, '2026-01-05 00:14:00+00');

INSERT INTO public.changes (org, id, service, source, external_id, kind, started_at, latest_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 'source 1', 'external_id 1', 'deploy', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.changes (org, id, service, source, external_id, kind, started_at, latest_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 2, 'source 2', 'external_id 2', 'flag', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.check_tests (uid, region, document, document_ciphertext, created_at, claim_until, holder, answer) VALUES ('ef90bf74-1cca-ae2c-b6c2-faeaf7b59789', 'region 1', '{"type": "http"}', NULL, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', '7691a13d-6a8f-07cb-4ddd-a6b45ea0ece0', '{"n": 1}');
INSERT INTO public.check_tests (uid, region, document, document_ciphertext, created_at, claim_until, holder, answer) VALUES ('f30558fd-aa89-dcf1-cfd2-a69b92e6d970', 'region 2', NULL, '\x02', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', 'ca5052cb-568c-1b98-69de-d9dd4da8c18d', '{"n": 2}');

INSERT INTO public.composite_terms (org, monitor, from_at, until_at, mode, quorum, children) VALUES (1, 1, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', 'all', 1, '{1}');
INSERT INTO public.composite_terms (org, monitor, from_at, until_at, mode, quorum, children) VALUES (2, 2, '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', 'quorum', 2, '{2}');

INSERT INTO public.composite_wakeups (org, monitor, due_at) VALUES (1, 1, '2026-01-05 00:07:00+00');
INSERT INTO public.composite_wakeups (org, monitor, due_at) VALUES (2, 2, '2026-01-05 00:14:00+00');

INSERT INTO public.deleted_monitor_terms (org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds, enabled) VALUES (1, 1, '2026-01-05 00:07:00+00', 1, '2026-01-05 00:07:00+00', 1, 1, 1, true);
INSERT INTO public.deleted_monitor_terms (org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds, enabled) VALUES (2, 2, '2026-01-05 00:14:00+00', 2, '2026-01-05 00:14:00+00', 2, 2, 2, false);

INSERT INTO public.deleted_monitors (org, id, project, type, deleted_at) VALUES (1, 1, 1, 'type 1', '2026-01-05 00:07:00+00');
INSERT INTO public.deleted_monitors (org, id, project, type, deleted_at) VALUES (2, 2, 2, 'type 2', '2026-01-05 00:14:00+00');

INSERT INTO public.destinations (org, id, webhook, channel, page, subscriber, failures, backoff_until) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, NULL, NULL, NULL, 1, '2026-01-05 01:07:00+00');
INSERT INTO public.destinations (org, id, webhook, channel, page, subscriber, failures, backoff_until) OVERRIDING SYSTEM VALUE VALUES (2, 2, NULL, 2, NULL, NULL, 2, '2026-01-05 01:14:00+00');

INSERT INTO public.escalation_policies (org, id, uid, project, name, repeat_last, after_seconds, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '04a027f7-a72f-09cd-99c2-6d7e0f5892e2', 1, 'name 1', true, '{1}', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.escalation_policies (org, id, uid, project, name, repeat_last, after_seconds, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '0ff8ba8a-a5cc-346d-e5ee-105833f2147f', 2, 'name 2', false, '{2}', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.escalation_targets (org, policy, step, place, channel, schedule) VALUES (1, 1, 1, 1, 1, NULL);
INSERT INTO public.escalation_targets (org, policy, step, place, channel, schedule) VALUES (2, 2, 2, 2, NULL, 2);

INSERT INTO public.expected_runs_20260105 (org, monitor, due_at, settled_at, verdict, reason) VALUES (1, 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', 'covered', 'reason 1');
INSERT INTO public.expected_runs_20260105 (org, monitor, due_at, settled_at, verdict, reason) VALUES (2, 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', 'missed', 'reason 2');

INSERT INTO public.gate_decisions_20260105 (org, project, service, uid, evaluated_at, service_uid, service_slug, service_name, state, action, unoverridden_action, reasons, policy_revision, override_uid, actor_label, actor_user, via_token, evidence) VALUES (1, 1, 1, '893338bc-64a9-44eb-03e0-3e70742b5d24', '2026-01-05 00:07:00+00', '56a6f0f7-5492-61c3-b8f0-fbd81b7b2e36', 'service_slug 1', 'service_name 1', 'ALLOW', 'ALLOW', 'ALLOW', '{"n": 1}', 1, '206bdbbc-2f91-9471-28f4-15a113469ae6', 'actor_label 1', 'fafc9f5c-4320-a63c-8f7f-8e98dd1e9ae2', true, '{"n": 1}');
INSERT INTO public.gate_decisions_20260105 (org, project, service, uid, evaluated_at, service_uid, service_slug, service_name, state, action, unoverridden_action, reasons, policy_revision, override_uid, actor_label, actor_user, via_token, evidence) VALUES (2, 2, 2, '5e109762-54f2-345c-30a0-14ff415fdd72', '2026-01-05 00:14:00+00', 'd36c5dff-1f60-19e6-4485-d7292e923a74', 'service_slug 2', 'service_name 2', 'NOT_CONFIGURED', NULL, NULL, '{"n": 2}', 2, '30118c77-9a3d-096c-75e1-639537bd6bef', 'actor_label 2', 'e5aaccee-7f62-8be8-bc8a-b99dc9f13f7b', false, '{"n": 2}');

INSERT INTO public.gate_overrides (org, id, uid, service, policy_source, policy_revision, reason, created_at, expires_at, actor_label, actor_user, via_token, revoked_at, revoked_reason, revoked_by_label, revoked_by_user, revoked_via_token) OVERRIDING SYSTEM VALUE VALUES (1, 1, '0145f21e-62e0-4267-dbdc-d77b29bb0a5b', 1, 'service', 1, 'reason 1', '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', 'actor_label 1', '97111a8e-48c1-d823-51d3-24465c7fb30e', true, NULL, NULL, 'revoked_by_label 1', '61e777cb-ff93-0b22-6fca-fd0536a0a3fb', true);
INSERT INTO public.gate_overrides (org, id, uid, service, policy_source, policy_revision, reason, created_at, expires_at, actor_label, actor_user, via_token, revoked_at, revoked_reason, revoked_by_label, revoked_by_user, revoked_via_token) OVERRIDING SYSTEM VALUE VALUES (2, 2, '71018aba-5f27-282c-7117-693cd97b2341', 2, 'project', 2, 'reason 2', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', 'actor_label 2', '10a35a35-e272-0935-69cf-90f12f56fbe0', false, '2026-01-05 03:00:00+00', 'manual', 'revoked_by_label 2', 'fa319629-1066-935c-2c62-ca8589d21257', false);

INSERT INTO public.gate_policies (org, id, project, service, revision, schema_version, window_mode, "window", clauses, budget_consumed_percent, max_seal_lag_seconds, unknown_behavior, began_at, ended_at, author_label) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 1, 1, 1, 'one', '30d', '{"n": 1}', 1, 1, 'warn', '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', 'author_label 1');
INSERT INTO public.gate_policies (org, id, project, service, revision, schema_version, window_mode, "window", clauses, budget_consumed_percent, max_seal_lag_seconds, unknown_behavior, began_at, ended_at, author_label) OVERRIDING SYSTEM VALUE VALUES (2, 2, 2, 2, 2, 2, 'all', NULL, '{"n": 2}', 2, 2, 'block', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', 'author_label 2');

INSERT INTO public.heartbeats_20260105 (org, monitor, ts, latency_ms, code, dns_us, connect_us, tls_us, first_byte_us, up, msg) VALUES (1, 1, '2026-01-05 00:07:00+00', 1, 1, 1, 1, 1, 1, true, 'msg 1');
INSERT INTO public.heartbeats_20260105 (org, monitor, ts, latency_ms, code, dns_us, connect_us, tls_us, first_byte_us, up, msg) VALUES (2, 2, '2026-01-05 00:14:00+00', 2, 2, 2, 2, 2, 2, false, 'msg 2');

INSERT INTO public.incident_pages (org, incident, id, step, at, paged, unreachable) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 1, '2026-01-05 00:07:00+00', '{"paged 1"}', '{"unreachable 1"}');
INSERT INTO public.incident_pages (org, incident, id, step, at, paged, unreachable) OVERRIDING SYSTEM VALUE VALUES (2, 2, 2, 2, '2026-01-05 00:14:00+00', '{"paged 2"}', '{"unreachable 2"}');

INSERT INTO public.incident_updates (org, incident, seq, uid, status, body, public, author, author_label, created_at) VALUES (1, 1, 1, 'e3475143-221a-1bf1-ad5a-584390b5da1b', 'status 1', 'body 1', true, 1, 'author_label 1', '2026-01-05 00:07:00+00');
INSERT INTO public.incident_updates (org, incident, seq, uid, status, body, public, author, author_label, created_at) VALUES (2, 2, 2, '6e4bb810-fff9-0026-1e33-0d941ce470c1', 'status 2', 'body 2', false, 2, 'author_label 2', '2026-01-05 00:14:00+00');

INSERT INTO public.incidents (org, id, uid, project, monitor, service, external_key, seq, title, status, impact, source, started_at, resolved_at, acknowledged_at, acknowledged_by, acknowledged_label, escalation_policy, escalation_step, last_escalated_at, escalate_at, escalation_started_at, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '9795f7cb-65c0-bc3a-5784-19c7939b570e', 1, 1, NULL, 'external_key 1', 1, 'title 1', 'investigating', 'minor', 'auto', '2026-01-05 00:07:00+00', NULL, '2026-01-05 00:07:00+00', 1, 'acknowledged_label 1', 1, 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.incidents (org, id, uid, project, monitor, service, external_key, seq, title, status, impact, source, started_at, resolved_at, acknowledged_at, acknowledged_by, acknowledged_label, escalation_policy, escalation_step, last_escalated_at, escalate_at, escalation_started_at, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'af24b845-8ae7-15fb-075c-7819387d9b97', 2, 2, NULL, 'external_key 2', 2, 'title 2', 'resolved', 'major', 'manual', '2026-01-05 00:14:00+00', '2026-01-05 05:00:00+00', '2026-01-05 00:14:00+00', 2, 'acknowledged_label 2', 2, 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.jobs (org, id, uid, shard, monitor, revision, reason, due_at, claim_until, holder, lease_until) OVERRIDING SYSTEM VALUE VALUES (1, 1, '55035d5b-0d7a-9f4f-6125-fa74ecbc4a08', 1, 1, 1, 'confirm', '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', '2c546ab9-651a-4d73-9579-d34a362bee11', '2026-01-05 01:07:00+00');
INSERT INTO public.jobs (org, id, uid, shard, monitor, revision, reason, due_at, claim_until, holder, lease_until) OVERRIDING SYSTEM VALUE VALUES (2, 2, '974eb065-1056-6e2f-792f-fd3c945eeef4', 2, 2, 2, 'asked', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', '3831e975-0a98-1853-8e4f-2dc79ee4558a', '2026-01-05 01:14:00+00');

INSERT INTO public.maintenance_previews (org, uid, project, mutation, maintenance, monitor, starts_at, ends_at, approximate, expires_at) VALUES (1, '58f86a7b-5e63-b184-4921-0635684f0622', 1, 'create', 1, 1, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', true, '2026-01-05 01:07:00+00');
INSERT INTO public.maintenance_previews (org, uid, project, mutation, maintenance, monitor, starts_at, ends_at, approximate, expires_at) VALUES (2, 'f4846ad9-bc69-0e12-d10b-e50df8ed803b', 2, 'annul', 2, 2, '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', false, '2026-01-05 01:14:00+00');

INSERT INTO public.maintenance_series (org, id, uid, project, monitor, rrule, starts_at, duration_seconds, timezone, reason, generated_through, ended_at, created_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '1ea7cf6d-ba1f-e672-d4bf-e808766f5490', 1, 1, 'rrule 1', '2026-01-05 00:07:00+00', 1, 'timezone 1', 'reason 1', '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.maintenance_series (org, id, uid, project, monitor, rrule, starts_at, duration_seconds, timezone, reason, generated_through, ended_at, created_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '6f7d1476-a27c-8dcb-6a0a-f379b2540b18', 2, 2, 'rrule 2', '2026-01-05 00:14:00+00', 2, 'timezone 2', 'reason 2', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.maintenances (org, id, uid, project, monitor, series, starts_at, ends_at, reason, created_at, archived_at, cancel_effective_at, resumed_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '79a5c2d1-bc72-2e19-17cf-a956249a8d81', 1, 1, 1, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', 'reason 1', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.maintenances (org, id, uid, project, monitor, series, starts_at, ends_at, reason, created_at, archived_at, cancel_effective_at, resumed_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'eab9aad1-def3-4a33-ec9f-f4650716be33', 2, 2, 2, '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', 'reason 2', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.memberships (org, id, uid, user_id, project, role, created_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'fd26d615-4cc4-5748-565e-9d5f682caf40', 1, NULL, 'org_admin', '2026-01-05 00:07:00+00');
INSERT INTO public.memberships (org, id, uid, user_id, project, role, created_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'c4d93050-54f6-a791-b47a-42a8852dbaf9', 2, 2, 'viewer', '2026-01-05 00:14:00+00');

INSERT INTO public.monitor_channels (org, monitor, channel) VALUES (1, 1, 1);
INSERT INTO public.monitor_channels (org, monitor, channel) VALUES (2, 2, 2);

INSERT INTO public.monitor_days (org, monitor, day, good_us, bad_us, unknown_us, excluded_us, up, total) VALUES (1, 1, '2026-01-05 00:07:00+00', 1, 1, 1, 1, 1, 1);
INSERT INTO public.monitor_days (org, monitor, day, good_us, bad_us, unknown_us, excluded_us, up, total) VALUES (2, 2, '2026-01-05 00:14:00+00', 2, 2, 2, 2, 2, 2);

INSERT INTO public.monitor_hours (org, monitor, hour, good_us, bad_us, unknown_us, excluded_us, up, total) VALUES (1, 1, '2026-01-05 00:07:00+00', 1, 1, 1, 1, 1, 1);
INSERT INTO public.monitor_hours (org, monitor, hour, good_us, bad_us, unknown_us, excluded_us, up, total) VALUES (2, 2, '2026-01-05 00:14:00+00', 2, 2, 2, 2, 2, 2);

INSERT INTO public.monitor_states (org, monitor, version, status, failures, since, silent_since) VALUES (1, 1, 1, 'up', 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.monitor_states (org, monitor, version, status, failures, since, silent_since) VALUES (2, 2, 2, 'down', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.monitor_targets (org, monitor, "window", uid, objective, burn_enabled, created_at, updated_at) VALUES (1, 1, '30d', 'b29f7df4-5000-7a3a-8042-dcda8bea4b79', 1, true, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.monitor_targets (org, monitor, "window", uid, objective, burn_enabled, created_at, updated_at) VALUES (2, 2, '7d', 'eb8e0cf8-bdaf-d43e-28c7-94a74a14c5fc', 2, false, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.monitor_terms (org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds, enabled) VALUES (1, 1, '2026-01-05 00:07:00+00', 1, '2026-01-05 00:07:00+00', 1, 1, 1, true);
INSERT INTO public.monitor_terms (org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds, enabled) VALUES (2, 2, '2026-01-05 00:14:00+00', 2, '2026-01-05 00:14:00+00', 2, 2, 2, false);

INSERT INTO public.monitors (org, id, uid, project, shard, slug, name, description, type, target, method, interval_seconds, timeout_seconds, retries, failure_threshold, confirm_interval_seconds, renotify_seconds, grace_seconds, conditions, tags, depends_on, config, config_ciphertext, enabled, auto_incident, escalation_policy, push_token_hash, push_token_ciphertext, revision, managed_by, bundle_uid, bundle_path, orphaned_at, superseded_by, retired_at, created_by, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '1acee791-ebb9-326e-a37d-6a92d85390d4', 1, 1, 'slug 1', 'name 1', 'description 1', 'http', 'target 1', 'method 1', 1, 1, 1, 1, 1, 1, 1, '{"conditions 1"}', '{"tags 1"}', '{1}', '{"n": 1}', '\x636f6e6669675f636970686572746578742031', true, true, 1, '\x707573685f746f6b656e5f686173682031', '\x707573685f746f6b656e5f636970686572746578742031', 1, 'managed_by 1', 'bundle_uid 1', 'bundle_path 1', '2026-01-05 00:07:00+00', NULL, NULL, 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.monitors (org, id, uid, project, shard, slug, name, description, type, target, method, interval_seconds, timeout_seconds, retries, failure_threshold, confirm_interval_seconds, renotify_seconds, grace_seconds, conditions, tags, depends_on, config, config_ciphertext, enabled, auto_incident, escalation_policy, push_token_hash, push_token_ciphertext, revision, managed_by, bundle_uid, bundle_path, orphaned_at, superseded_by, retired_at, created_by, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'fa60e30e-1d80-29c9-edec-2cda626a3a11', 2, 2, 'slug 2', 'name 2', 'description 2', 'composite', 'target 2', 'method 2', 2, 2, 2, 2, 2, 2, 2, '{"conditions 2"}', '{"tags 2"}', '{2}', '{"n": 2}', '\x636f6e6669675f636970686572746578742032', false, false, 2, '\x707573685f746f6b656e5f686173682032', '\x707573685f746f6b656e5f636970686572746578742032', 2, 'managed_by 2', 'bundle_uid 2', 'bundle_path 2', '2026-01-05 00:14:00+00', NULL, '2026-01-05 00:00:00+00', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.notification_channels (org, id, uid, project, type, name, config, config_ciphertext, enabled, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '8eda2271-b5c7-2375-c650-5dc31e49e0e9', 1, 'type 1', 'name 1', '{"n": 1}', '\x636f6e6669675f636970686572746578742031', true, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.notification_channels (org, id, uid, project, type, name, config, config_ciphertext, enabled, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '57cacc82-548b-90df-2ec6-aef89d0675b3', 2, 'type 2', 'name 2', '{"n": 2}', '\x636f6e6669675f636970686572746578742032', false, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.notification_threads (org, thread, destination, external_id, created_at) VALUES (1, '1a881bc9-96bd-bf36-33ec-3c7fe57f9ab1', 1, 'external_id 1', '2026-01-05 00:07:00+00');
INSERT INTO public.notification_threads (org, thread, destination, external_id, created_at) VALUES (2, '0d851bdc-1dde-c8e3-69ad-d5fd270e277a', 2, 'external_id 2', '2026-01-05 00:14:00+00');

INSERT INTO public.oncall_overrides (org, id, uid, schedule, channel, starts_at, ends_at, created_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '2a107ba3-31de-f494-ecdf-05ce6e6a5fdd', 1, 1, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.oncall_overrides (org, id, uid, schedule, channel, starts_at, ends_at, created_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'df4fd02b-de79-7aa4-3c3d-958366627ed6', 2, 2, '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.oncall_participants (org, schedule, place, channel) VALUES (1, 1, 1, 1);
INSERT INTO public.oncall_participants (org, schedule, place, channel) VALUES (2, 2, 2, 2);

INSERT INTO public.oncall_schedules (org, id, uid, project, name, anchor_at, shift_seconds, timezone, calendar_token_hash, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '76d95d22-7964-b146-1f45-d74707075975', 1, 'name 1', '2026-01-05 00:07:00+00', 1, 'timezone 1', '\x63616c656e6461725f746f6b656e5f686173682031', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.oncall_schedules (org, id, uid, project, name, anchor_at, shift_seconds, timezone, calendar_token_hash, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'ca7fa493-f04a-5218-91fa-6dc9afdb71bf', 2, 'name 2', '2026-01-05 00:14:00+00', 2, 'timezone 2', '\x63616c656e6461725f746f6b656e5f686173682032', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.organizations (id, uid, slug, name, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 'f5e10364-7406-3f42-a1d0-adb539939fcd', 'slug 1', 'name 1', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.organizations (id, uid, slug, name, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 'fafa17aa-0581-39f4-ad1f-91baa4f0e27f', 'slug 2', 'name 2', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.outages (org, id, uid, monitor, began_at, ended_at, why, announced_at, suppressed_by, waits_since, waits_until, next_check_at, incident, notified_at, service, failed_open) OVERRIDING SYSTEM VALUE VALUES (1, 1, '74e0b769-a19d-d1f4-c92a-d01be85c1ab6', 1, '2026-01-05 00:07:00+00', NULL, 'why 1', '2026-01-05 00:07:00+00', 'waiting', '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', '2026-01-05 00:07:00+00', 1, '2026-01-05 00:07:00+00', 1, 'failed_open 1');
INSERT INTO public.outages (org, id, uid, monitor, began_at, ended_at, why, announced_at, suppressed_by, waits_since, waits_until, next_check_at, incident, notified_at, service, failed_open) OVERRIDING SYSTEM VALUE VALUES (2, 2, '8d2d8a71-0e83-98ad-1fd5-f5a4e25b79ad', 2, '2026-01-05 00:14:00+00', '2026-01-05 05:00:00+00', 'why 2', '2026-01-05 00:14:00+00', 'delegated', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', '2026-01-05 00:14:00+00', 2, '2026-01-05 00:14:00+00', 2, 'failed_open 2');

INSERT INTO public.outbox (org, id, uid, project, topic, destination, stream, thread, event, payload, status, ready, attempts, due_at, lease, enqueued_through, last_error, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '52deb5ce-9a08-3ad5-038c-c59a35218457', 1, 'incident_event', 1, '9418cb49-cae5-1075-2605-81b69dfef6be', '21fbe5b3-3d43-999b-6d9b-b8961efaf3e2', 'event 1', '{"n": 1}', 'pending', true, 1, '2026-01-05 00:07:00+00', 'bedf2331-d7d1-3b72-1d1a-0e080189c072', 1, 'last_error 1', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.outbox (org, id, uid, project, topic, destination, stream, thread, event, payload, status, ready, attempts, due_at, lease, enqueued_through, last_error, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'ad294e58-f1b9-bec3-44a7-583ded993f07', 2, 'subscription', 2, 'f5b4eae9-3171-2ccb-c777-3f0a9293b961', '59dcc157-1ff7-3e01-0c0f-c324bb0cd68a', 'event 2', '{"n": 2}', 'delivered', false, 2, '2026-01-05 00:14:00+00', '20797781-c035-1dbc-0afc-1290f621c733', 2, 'last_error 2', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.password_resets (user_id, token_hash, created_at, expires_at) VALUES (1, '\x746f6b656e5f686173682031', '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00');
INSERT INTO public.password_resets (user_id, token_hash, created_at, expires_at) VALUES (2, '\x746f6b656e5f686173682032', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00');

INSERT INTO public.postmortems (org, incident, uid, body, declaration_revision, author, author_label, published_at, created_at, updated_at) VALUES (1, 1, '6c74f7ea-b015-5914-e796-977d10723a23', 'body 1', 1, 1, 'author_label 1', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.postmortems (org, incident, uid, body, declaration_revision, author, author_label, published_at, created_at, updated_at) VALUES (2, 2, '4ce3c22d-b2b9-efe5-5fa7-f0a5e3cfe778', 'body 2', 2, 2, 'author_label 2', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.presences (process, from_at, through_at, host, roles, regions, version, accepts_pushes, ended) VALUES ('2615875b-cc71-e1c7-c87f-5d2c6423ba61', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', 'host 1', '{"roles 1"}', '{"regions 1"}', 'version 1', true, true);
INSERT INTO public.presences (process, from_at, through_at, host, roles, regions, version, accepts_pushes, ended) VALUES ('412c5e27-c55c-3225-0414-22b60d5a5269', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', 'host 2', '{"roles 2"}', '{"regions 2"}', 'version 2', false, false);

INSERT INTO public.probe_errors (org, monitor, reason, at) VALUES (1, 1, 'missing_reference', '2026-01-05 00:07:00+00');
INSERT INTO public.probe_errors (org, monitor, reason, at) VALUES (2, 2, 'decrypt_failed', '2026-01-05 00:14:00+00');

INSERT INTO public.project_secrets (org, id, uid, project, name, value_ciphertext, created_at, rotated_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'dd57f71f-8542-f033-5af7-6b965e3c67f5', 1, 'name 1', '\x76616c75655f636970686572746578742031', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.project_secrets (org, id, uid, project, name, value_ciphertext, created_at, rotated_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '58bb4cb8-d969-3b0d-8264-877f17c2582d', 2, 'name 2', '\x76616c75655f636970686572746578742032', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.project_targets (org, project, "window", uid, objective, created_at, updated_at) VALUES (1, 1, '30d', 'd75d1062-e50a-81f2-602c-05a5aa06e55d', 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.project_targets (org, project, "window", uid, objective, created_at, updated_at) VALUES (2, 2, '7d', '6e6ff1ca-d6e0-53be-b664-da4bd100981d', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.projects (org, id, uid, slug, name, graph_generation, sla_report_weekly, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '3b0af9c4-d7f4-62e2-a4e9-b98d0a3d1dba', 'slug 1', 'name 1', 1, true, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.projects (org, id, uid, slug, name, graph_generation, sla_report_weekly, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '1151eab9-8b75-292c-db77-e0cef47dc989', 'slug 2', 'name 2', 2, false, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.push_events (org, monitor, at, kind, msg) VALUES (1, 1, '2026-01-05 00:07:00+00', 'kind 1', 'msg 1');
INSERT INTO public.push_events (org, monitor, at, kind, msg) VALUES (2, 2, '2026-01-05 00:14:00+00', 'kind 2', 'msg 2');

INSERT INTO public.recovery_codes (user_id, code_hash) VALUES (1, '\x636f64655f686173682031');
INSERT INTO public.recovery_codes (user_id, code_hash) VALUES (2, '\x636f64655f686173682032');

INSERT INTO public.repairs (org, id, shard, monitor, from_at, to_at, reason, created_at, attempts, due_at, last_error) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 1, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', 'reason 1', '2026-01-05 00:07:00+00', 1, '2026-01-05 00:07:00+00', 'last_error 1');
INSERT INTO public.repairs (org, id, shard, monitor, from_at, to_at, reason, created_at, attempts, due_at, last_error) OVERRIDING SYSTEM VALUE VALUES (2, 2, 2, 2, '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', 'reason 2', '2026-01-05 00:14:00+00', 2, '2026-01-05 00:14:00+00', 'last_error 2');

INSERT INTO public.reset_requests (address, attempts, due_at) VALUES ('address 1', 1, '2026-01-05 00:07:00+00');
INSERT INTO public.reset_requests (address, attempts, due_at) VALUES ('address 2', 2, '2026-01-05 00:14:00+00');

INSERT INTO public.run_batches (id, shard, kind, orgs, monitors, due_ats, seal_ats, claim_untils, published, first_due, claim_until, first_seal, last_seal, holder, lease_until, claimed) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'run', '{1}', '{1}', '{"2026-01-05 00:07:00+00"}', '{"2026-01-05 00:07:00+00"}', '{"2026-01-05 01:07:00+00"}', true, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '080d1b24-9da5-4532-107f-17c22fe26cc9', '2026-01-05 01:07:00+00', true);
INSERT INTO public.run_batches (id, shard, kind, orgs, monitors, due_ats, seal_ats, claim_untils, published, first_due, claim_until, first_seal, last_seal, holder, lease_until, claimed) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'push', '{2}', '{2}', '{"2026-01-05 00:14:00+00"}', '{"2026-01-05 00:14:00+00"}', '{"2026-01-05 01:14:00+00"}', false, '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '9164260a-925b-d493-5d76-10f89d3e860c', '2026-01-05 01:14:00+00', false);

INSERT INTO public.schema_migrations (version, name, checksum, applied_at) VALUES (1, '0001_baseline', '86d32876c9ac4b22fd80b35c743c92e338fef99b0227f57f2e08a488359da626', '2026-11-25 02:50:49.610691+00');

INSERT INTO public.service_alerting (org, service, owns_paging, page_on, page_on_unknown, confirm_evaluations, renotify_seconds, generation, edited_at, due_at, live_evaluated_at, live_generation, live_revision, live_state, live_streak, live_since, live_reason, live_error, live_lease_until, burn_evaluated_at, burn_generation, burn_reason, burn_error, burn_lease_until) VALUES (1, 1, true, '{"page_on 1"}', true, 1, 1, 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', 1, 1, 'healthy', 1, '2026-01-05 00:07:00+00', 'live_reason 1', 'live_error 1', '2026-01-05 01:07:00+00', '2026-01-05 00:07:00+00', 1, 'burn_reason 1', 'burn_error 1', '2026-01-05 01:07:00+00');
INSERT INTO public.service_alerting (org, service, owns_paging, page_on, page_on_unknown, confirm_evaluations, renotify_seconds, generation, edited_at, due_at, live_evaluated_at, live_generation, live_revision, live_state, live_streak, live_since, live_reason, live_error, live_lease_until, burn_evaluated_at, burn_generation, burn_reason, burn_error, burn_lease_until) VALUES (2, 2, false, '{"page_on 2"}', false, 2, 2, 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', 2, 2, 'down', 2, '2026-01-05 00:14:00+00', 'live_reason 2', 'live_error 2', '2026-01-05 01:14:00+00', '2026-01-05 00:14:00+00', 2, 'burn_reason 2', 'burn_error 2', '2026-01-05 01:14:00+00');

INSERT INTO public.service_days (org, service, start, epoch, minutes, good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us) VALUES (1, 1, '2026-01-05 00:07:00+00', 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
INSERT INTO public.service_days (org, service, start, epoch, minutes, good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us) VALUES (2, 2, '2026-01-05 00:14:00+00', 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);

INSERT INTO public.service_dependencies (org, service, upstream) VALUES (1, 1, 3);
INSERT INTO public.service_dependencies (org, service, upstream) VALUES (2, 2, 4);

INSERT INTO public.service_dependency_terms (org, service, upstream, from_at, until_at) VALUES (1, 1, 3, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00');
INSERT INTO public.service_dependency_terms (org, service, upstream, from_at, until_at) VALUES (2, 2, 4, '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00');

INSERT INTO public.service_episodes (org, id, uid, service, began_at, ended_at, state, incident, announced_at, notified_at, page_delivered_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '1e3ac47a-4e13-f741-99f3-b9e18dfc99e8', 1, '2026-01-05 00:07:00+00', NULL, 'state 1', 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.service_episodes (org, id, uid, service, began_at, ended_at, state, incident, announced_at, notified_at, page_delivered_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '6e04b50b-dc8c-1e2f-4380-6290e0d9ca1f', 2, '2026-01-05 00:14:00+00', '2026-01-05 05:00:00+00', 'state 2', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.service_epochs (org, service, seq, uid, revision, effective_at, snapshot_hash, members) VALUES (1, 1, 1, '3cdb8445-4a32-0109-94c5-11e1290fcbd3', 1, '2026-01-05 00:07:00+00', 'snapshot_hash 1', 1);
INSERT INTO public.service_epochs (org, service, seq, uid, revision, effective_at, snapshot_hash, members) VALUES (2, 2, 2, '3ccd7134-cee0-99f0-1103-344e96e4533b', 2, '2026-01-05 00:14:00+00', 'snapshot_hash 2', 2);

INSERT INTO public.service_hours (org, service, start, epoch, minutes, good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us) VALUES (1, 1, '2026-01-05 00:07:00+00', 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
INSERT INTO public.service_hours (org, service, start, epoch, minutes, good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us) VALUES (2, 2, '2026-01-05 00:14:00+00', 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);

INSERT INTO public.service_minutes (org, service, from_at, until_at, epoch, good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us) VALUES (1, 1, '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00', 1, 1, 1, 1, 1, 1, 1, 1, 1);
INSERT INTO public.service_minutes (org, service, from_at, until_at, epoch, good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us) VALUES (2, 2, '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00', 2, 2, 2, 2, 2, 2, 2, 2, 2);

INSERT INTO public.service_revisions (org, service, revision, uid, effective_at, governs_from, monitors, sli, mode, healthy_min, degraded_min, region_mode, healthy_min_regions, degraded_min_regions, missing_data, active_multiplier, active_floor_us, created_at, created_by, created_by_label) VALUES (1, 1, 1, '325efb52-72de-22c9-314c-954a80392981', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '{1}', '{1}', 'all', 1, 1, 'per_region', 1, 1, 'unknown', 1, 1, '2026-01-05 00:07:00+00', 1, 'created_by_label 1');
INSERT INTO public.service_revisions (org, service, revision, uid, effective_at, governs_from, monitors, sli, mode, healthy_min, degraded_min, region_mode, healthy_min_regions, degraded_min_regions, missing_data, active_multiplier, active_floor_us, created_at, created_by, created_by_label) VALUES (2, 2, 2, '68145e42-722d-ce4f-b2d2-09f9266ab6e7', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '{2}', '{2}', 'any', 2, 2, 'any_region', 2, 2, 'bad', 2, 2, '2026-01-05 00:14:00+00', 2, 'created_by_label 2');

INSERT INTO public.service_targets (org, service, "window", uid, objective, burn_enabled, created_at, updated_at) VALUES (1, 1, '30d', 'ecffa0b8-7048-21b1-a736-28915e8a5853', 1, true, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.service_targets (org, service, "window", uid, objective, burn_enabled, created_at, updated_at) VALUES (2, 2, '7d', '6ead47e3-8b5f-9574-8e52-64955a9d1f20', 2, false, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.services (org, id, uid, project, slug, name, description, escalation_policy, oncall_schedule, managed_by, bundle_uid, bundle_path, orphaned_at, materialization_start, sealed_through, backfill_from, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '1e8b1add-2c87-a2f8-3bc4-26901c7bc0e3', 1, 'slug 1', 'name 1', 'description 1', 1, 1, 'managed_by 1', 'bundle_uid 1', 'bundle_path 1', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.services (org, id, uid, project, slug, name, description, escalation_policy, oncall_schedule, managed_by, bundle_uid, bundle_path, orphaned_at, materialization_start, sealed_through, backfill_from, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '50029936-0664-7c06-d469-de7f077f2d65', 2, 'slug 2', 'name 2', 'description 2', 2, 2, 'managed_by 2', 'bundle_uid 2', 'bundle_path 2', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');
INSERT INTO public.services (org, id, uid, project, slug, name, description, escalation_policy, oncall_schedule, managed_by, bundle_uid, bundle_path, orphaned_at, materialization_start, sealed_through, backfill_from, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 3, '0f73a3d5-1788-5347-e62b-937bb5b3952a', 1, 'slug 3', 'name 3', 'description 3', 1, 1, 'managed_by 3', 'bundle_uid 3', 'bundle_path 3', '2026-01-05 00:21:00+00', '2026-01-05 00:21:00+00', '2026-01-05 00:21:00+00', '2026-01-05 00:21:00+00', '2026-01-05 00:21:00+00', '2026-01-05 00:21:00+00');
INSERT INTO public.services (org, id, uid, project, slug, name, description, escalation_policy, oncall_schedule, managed_by, bundle_uid, bundle_path, orphaned_at, materialization_start, sealed_through, backfill_from, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 4, '77c3ec2e-b084-95e0-d3ba-f827c1807931', 2, 'slug 4', 'name 4', 'description 4', 2, 2, 'managed_by 4', 'bundle_uid 4', 'bundle_path 4', '2026-01-05 00:28:00+00', '2026-01-05 00:28:00+00', '2026-01-05 00:28:00+00', '2026-01-05 00:28:00+00', '2026-01-05 00:28:00+00', '2026-01-05 00:28:00+00');

INSERT INTO public.sessions (token_hash, uid, user_id, client, issuer, created_at, last_seen_at, expires_at) VALUES ('\x746f6b656e5f686173682031', '0d091068-9b63-176d-da9d-dfd7ffac1dd2', 1, 'client 1', 'issuer 1', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 01:07:00+00');
INSERT INTO public.sessions (token_hash, uid, user_id, client, issuer, created_at, last_seen_at, expires_at) VALUES ('\x746f6b656e5f686173682032', '8a76643f-c22c-e501-6ae4-22365c76a896', 2, 'client 2', 'issuer 2', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 01:14:00+00');

INSERT INTO public.settings (name, uid, value, secret_ciphertext, updated_at) VALUES ('name 1', '426f82ec-3504-65c8-ea03-f2daef420058', '{"n": 1}', '\x7365637265745f636970686572746578742031', '2026-01-05 00:07:00+00');
INSERT INTO public.settings (name, uid, value, secret_ciphertext, updated_at) VALUES ('name 2', '3509bb61-9aea-93f1-8ea2-45ef7f8d93ec', '{"n": 2}', '\x7365637265745f636970686572746578742032', '2026-01-05 00:14:00+00');

INSERT INTO public.shards (id, org, region, reserved_through, generation, sealed_through, settled_through, rolled_up_through) OVERRIDING SYSTEM VALUE VALUES (1, 0, 'region 1', '2026-01-05 00:07:00+00', 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.shards (id, org, region, reserved_through, generation, sealed_through, settled_through, rolled_up_through) OVERRIDING SYSTEM VALUE VALUES (2, 0, 'region 2', '2026-01-05 00:14:00+00', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.sign_on_flows (state_hash, browser_hash, issuer, nonce, verifier, redirect, link_user, expires_at) VALUES ('\x73746174655f686173682031', '\x62726f777365725f686173682031', 'issuer 1', 'nonce 1', 'verifier 1', 'redirect 1', 1, '2026-01-05 01:07:00+00');
INSERT INTO public.sign_on_flows (state_hash, browser_hash, issuer, nonce, verifier, redirect, link_user, expires_at) VALUES ('\x73746174655f686173682032', '\x62726f777365725f686173682032', 'issuer 2', 'nonce 2', 'verifier 2', 'redirect 2', 2, '2026-01-05 01:14:00+00');

INSERT INTO public.status_changes (org, id, monitor, at, old_status, new_status, committed_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, '2026-01-05 00:07:00+00', 'old_status 1', 'new_status 1', '2026-01-05 00:07:00+00');
INSERT INTO public.status_changes (org, id, monitor, at, old_status, new_status, committed_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 2, '2026-01-05 00:14:00+00', 'old_status 2', 'new_status 2', '2026-01-05 00:14:00+00');

INSERT INTO public.status_components (org, id, uid, page, name, description, group_name, "position", source, monitor, service, manual_status, revision, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '8d089e85-c2bf-0139-be54-abedc0446dc0', 1, 'name 1', 'description 1', 'group_name 1', 1, 'monitor', 1, NULL, NULL, 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.status_components (org, id, uid, page, name, description, group_name, "position", source, monitor, service, manual_status, revision, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '20b8bfe0-d045-801e-fdfe-7ff6b96fc786', 2, 'name 2', 'description 2', 'group_name 2', 2, 'manual', NULL, NULL, 'operational', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.status_page_domains (domain, org, page) VALUES ('domain 1', 1, 1);
INSERT INTO public.status_page_domains (domain, org, page) VALUES ('domain 2', 2, 2);

INSERT INTO public.status_pages (org, id, uid, project, slug, title, visibility, token_hash, token_ciphertext, generation, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '582229bd-b005-6d61-0422-0a8beb212c7f', 1, 'slug 1', 'title 1', 'listed', NULL, NULL, 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.status_pages (org, id, uid, project, slug, title, visibility, token_hash, token_ciphertext, generation, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '66532ab6-a8eb-94de-5bf0-54349cbc9647', 2, 'slug 2', 'title 2', 'unlisted', '\x02', '\x0202', 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.subscribers (org, id, uid, page, kind, address, address_key, components, requested_components, requested_at, confirmed_at, bounces, suspended_at, token_hash, token_ciphertext, created_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '9f35a9b9-ba85-abf4-9cbb-fe79a7c81621', 1, 'mail', 'address 1', 'address_key 1', '{56d3b4e6-215c-a330-2157-fe301fa334af}', '{cf1e1dc6-df38-1dba-3aa9-2f00b4b11fd2}', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', 1, '2026-01-05 01:07:00+00', '\x746f6b656e5f686173682031', '\x746f6b656e5f636970686572746578742031', '2026-01-05 00:07:00+00');
INSERT INTO public.subscribers (org, id, uid, page, kind, address, address_key, components, requested_components, requested_at, confirmed_at, bounces, suspended_at, token_hash, token_ciphertext, created_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, 'a907ed76-e530-5934-2561-97b8bd9000cf', 2, 'webhook', 'address 2', 'address_key 2', '{17f2fc18-d57c-451d-eab6-808706236cc1}', '{8856ce3d-c48c-dad3-fddc-8842b8ff9a28}', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', 2, '2026-01-05 01:14:00+00', '\x746f6b656e5f686173682032', '\x746f6b656e5f636970686572746578742032', '2026-01-05 00:14:00+00');

INSERT INTO public.subscription_requests (address_hash, requested_at) VALUES ('\x616464726573735f686173682031', '2026-01-05 00:07:00+00');
INSERT INTO public.subscription_requests (address_hash, requested_at) VALUES ('\x616464726573735f686173682032', '2026-01-05 00:14:00+00');

INSERT INTO public.user_identities (issuer, subject, user_id, created_at) VALUES ('issuer 1', 'subject 1', 1, '2026-01-05 00:07:00+00');
INSERT INTO public.user_identities (issuer, subject, user_id, created_at) VALUES ('issuer 2', 'subject 2', 2, '2026-01-05 00:14:00+00');

INSERT INTO public.users (id, uid, email, email_verified, display_name, is_global_admin, password, totp_ciphertext, totp_enabled_at, totp_step, totp_wrong_at, created_at, updated_at, last_active_at) OVERRIDING SYSTEM VALUE VALUES (1, 'bdf3c74e-7aa3-6ef6-fc4f-20386e8be157', 'email 1', true, 'display_name 1', true, 'password 1', '\x746f74705f636970686572746578742031', '2026-01-05 00:07:00+00', 1, '{"2026-01-05 00:07:00+00"}', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.users (id, uid, email, email_verified, display_name, is_global_admin, password, totp_ciphertext, totp_enabled_at, totp_step, totp_wrong_at, created_at, updated_at, last_active_at) OVERRIDING SYSTEM VALUE VALUES (2, '6b9b962a-da13-b416-cdac-41ea155d5d10', 'email 2', false, 'display_name 2', false, 'password 2', '\x746f74705f636970686572746578742032', '2026-01-05 00:14:00+00', 2, '{"2026-01-05 00:14:00+00"}', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

INSERT INTO public.webhooks (org, id, uid, project, url, secret_ciphertext, enabled, created_by, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'dfc88b06-6b55-cf7c-d5f0-d0756a49f8b3', 1, 'url 1', '\x7365637265745f636970686572746578742031', true, 1, '2026-01-05 00:07:00+00', '2026-01-05 00:07:00+00');
INSERT INTO public.webhooks (org, id, uid, project, url, secret_ciphertext, enabled, created_by, created_at, updated_at) OVERRIDING SYSTEM VALUE VALUES (2, 2, '78e5dc0d-8780-9da6-3568-28367fef1ca2', 2, 'url 2', '\x7365637265745f636970686572746578742032', false, 2, '2026-01-05 00:14:00+00', '2026-01-05 00:14:00+00');

SELECT pg_catalog.setval('public.agent_tokens_id_seq', 2, true);

SELECT pg_catalog.setval('public.api_tokens_id_seq', 2, true);

SELECT pg_catalog.setval('public.audit_entries_id_seq', 2, true);

SELECT pg_catalog.setval('public.burn_rules_id_seq', 2, true);

SELECT pg_catalog.setval('public.changes_id_seq', 2, true);

SELECT pg_catalog.setval('public.destinations_id_seq', 2, true);

SELECT pg_catalog.setval('public.escalation_policies_id_seq', 2, true);

SELECT pg_catalog.setval('public.gate_overrides_id_seq', 2, true);

SELECT pg_catalog.setval('public.gate_policies_id_seq', 2, true);

SELECT pg_catalog.setval('public.incident_pages_id_seq', 2, true);

SELECT pg_catalog.setval('public.incidents_id_seq', 2, true);

SELECT pg_catalog.setval('public.jobs_id_seq', 2, true);

SELECT pg_catalog.setval('public.maintenance_series_id_seq', 2, true);

SELECT pg_catalog.setval('public.maintenances_id_seq', 2, true);

SELECT pg_catalog.setval('public.memberships_id_seq', 2, true);

SELECT pg_catalog.setval('public.monitors_id_seq', 2, true);

SELECT pg_catalog.setval('public.notification_channels_id_seq', 2, true);

SELECT pg_catalog.setval('public.oncall_overrides_id_seq', 2, true);

SELECT pg_catalog.setval('public.oncall_schedules_id_seq', 2, true);

SELECT pg_catalog.setval('public.organizations_id_seq', 2, true);

SELECT pg_catalog.setval('public.outages_id_seq', 2, true);

SELECT pg_catalog.setval('public.outbox_id_seq', 2, true);

SELECT pg_catalog.setval('public.project_secrets_id_seq', 2, true);

SELECT pg_catalog.setval('public.projects_id_seq', 2, true);

SELECT pg_catalog.setval('public.repairs_id_seq', 2, true);

SELECT pg_catalog.setval('public.run_batches_id_seq', 2, true);

SELECT pg_catalog.setval('public.service_episodes_id_seq', 2, true);

SELECT pg_catalog.setval('public.services_id_seq', 4, true);

SELECT pg_catalog.setval('public.shards_id_seq', 2, true);

SELECT pg_catalog.setval('public.status_changes_id_seq', 2, true);

SELECT pg_catalog.setval('public.status_components_id_seq', 2, true);

SELECT pg_catalog.setval('public.status_pages_id_seq', 2, true);

SELECT pg_catalog.setval('public.subscribers_id_seq', 2, true);

SELECT pg_catalog.setval('public.users_id_seq', 2, true);

SELECT pg_catalog.setval('public.webhooks_id_seq', 2, true);

ALTER TABLE ONLY public.agent_tokens
    ADD CONSTRAINT agent_tokens_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_tokens
    ADD CONSTRAINT agent_tokens_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.agent_tokens
    ADD CONSTRAINT agent_tokens_uid_key UNIQUE (uid);

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_holder_key UNIQUE (holder);

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (credential, region, instance);

ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.audit_entries
    ADD CONSTRAINT audit_entries_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.bundle_files
    ADD CONSTRAINT bundle_files_pkey PRIMARY KEY (provider, path);

ALTER TABLE ONLY public.bundle_providers
    ADD CONSTRAINT bundle_providers_pkey PRIMARY KEY (provider);

ALTER TABLE ONLY public.burn_rules
    ADD CONSTRAINT burn_rules_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.canary_runs
    ADD CONSTRAINT canary_runs_org_monitor_key UNIQUE (org, monitor);

ALTER TABLE ONLY public.canary_runs
    ADD CONSTRAINT canary_runs_pkey PRIMARY KEY (region, slot);

ALTER TABLE ONLY public.change_phases
    ADD CONSTRAINT change_phases_pkey PRIMARY KEY (org, change, uid);

ALTER TABLE ONLY public.changes
    ADD CONSTRAINT changes_org_service_source_external_id_key UNIQUE (org, service, source, external_id);

ALTER TABLE ONLY public.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.check_tests
    ADD CONSTRAINT check_tests_pkey PRIMARY KEY (uid);

ALTER TABLE ONLY public.composite_terms
    ADD CONSTRAINT composite_terms_pkey PRIMARY KEY (org, monitor, from_at);

ALTER TABLE ONLY public.composite_wakeups
    ADD CONSTRAINT composite_wakeups_pkey PRIMARY KEY (org, monitor);

ALTER TABLE ONLY public.deleted_monitor_terms
    ADD CONSTRAINT deleted_monitor_terms_pkey PRIMARY KEY (org, monitor, from_at);

ALTER TABLE ONLY public.deleted_monitors
    ADD CONSTRAINT deleted_monitors_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_org_channel_key UNIQUE (org, channel);

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_org_page_key UNIQUE (org, page);

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_org_subscriber_key UNIQUE (org, subscriber);

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_org_webhook_key UNIQUE (org, webhook);

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.escalation_policies
    ADD CONSTRAINT escalation_policies_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.escalation_targets
    ADD CONSTRAINT escalation_targets_pkey PRIMARY KEY (org, policy, step, place);

ALTER TABLE ONLY public.expected_runs
    ADD CONSTRAINT expected_runs_pkey PRIMARY KEY (org, monitor, due_at);

ALTER TABLE ONLY public.expected_runs_20260105
    ADD CONSTRAINT expected_runs_20260105_pkey PRIMARY KEY (org, monitor, due_at);

ALTER TABLE ONLY public.gate_decisions
    ADD CONSTRAINT gate_decisions_pkey PRIMARY KEY (org, evaluated_at, uid);

ALTER TABLE ONLY public.gate_decisions_20260105
    ADD CONSTRAINT gate_decisions_20260105_pkey PRIMARY KEY (org, evaluated_at, uid);

ALTER TABLE ONLY public.gate_overrides
    ADD CONSTRAINT gate_overrides_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.gate_policies
    ADD CONSTRAINT gate_policies_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.heartbeats
    ADD CONSTRAINT heartbeats_pkey PRIMARY KEY (org, monitor, ts);

ALTER TABLE ONLY public.heartbeats_20260105
    ADD CONSTRAINT heartbeats_20260105_pkey PRIMARY KEY (org, monitor, ts);

ALTER TABLE ONLY public.incident_pages
    ADD CONSTRAINT incident_pages_pkey PRIMARY KEY (org, incident, id);

ALTER TABLE ONLY public.incident_updates
    ADD CONSTRAINT incident_updates_pkey PRIMARY KEY (org, incident, seq);

ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT incidents_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.maintenance_previews
    ADD CONSTRAINT maintenance_previews_pkey PRIMARY KEY (org, uid);

ALTER TABLE ONLY public.maintenance_series
    ADD CONSTRAINT maintenance_series_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.maintenances
    ADD CONSTRAINT maintenances_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.monitor_channels
    ADD CONSTRAINT monitor_channels_pkey PRIMARY KEY (org, monitor, channel);

ALTER TABLE ONLY public.monitor_days
    ADD CONSTRAINT monitor_days_pkey PRIMARY KEY (org, monitor, day);

ALTER TABLE ONLY public.monitor_hours
    ADD CONSTRAINT monitor_hours_pkey PRIMARY KEY (org, monitor, hour);

ALTER TABLE ONLY public.monitor_states
    ADD CONSTRAINT monitor_states_pkey PRIMARY KEY (org, monitor);

ALTER TABLE ONLY public.monitor_targets
    ADD CONSTRAINT monitor_targets_pkey PRIMARY KEY (org, monitor, "window");

ALTER TABLE ONLY public.monitor_terms
    ADD CONSTRAINT monitor_terms_pkey PRIMARY KEY (org, monitor, from_at);

ALTER TABLE ONLY public.monitors
    ADD CONSTRAINT monitors_org_project_slug_key UNIQUE (org, project, slug);

ALTER TABLE ONLY public.monitors
    ADD CONSTRAINT monitors_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.notification_channels
    ADD CONSTRAINT notification_channels_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.notification_threads
    ADD CONSTRAINT notification_threads_pkey PRIMARY KEY (org, thread, destination);

ALTER TABLE ONLY public.oncall_overrides
    ADD CONSTRAINT oncall_overrides_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.oncall_participants
    ADD CONSTRAINT oncall_participants_pkey PRIMARY KEY (org, schedule, place);

ALTER TABLE ONLY public.oncall_schedules
    ADD CONSTRAINT oncall_schedules_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_slug_key UNIQUE (slug);

ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_uid_key UNIQUE (uid);

ALTER TABLE ONLY public.outages
    ADD CONSTRAINT outages_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.password_resets
    ADD CONSTRAINT password_resets_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY public.password_resets
    ADD CONSTRAINT password_resets_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.postmortems
    ADD CONSTRAINT postmortems_pkey PRIMARY KEY (org, incident);

ALTER TABLE ONLY public.presences
    ADD CONSTRAINT presences_pkey PRIMARY KEY (process, from_at);

ALTER TABLE ONLY public.probe_errors
    ADD CONSTRAINT probe_errors_pkey PRIMARY KEY (org, monitor);

ALTER TABLE ONLY public.project_secrets
    ADD CONSTRAINT project_secrets_org_project_name_key UNIQUE (org, project, name);

ALTER TABLE ONLY public.project_secrets
    ADD CONSTRAINT project_secrets_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.project_targets
    ADD CONSTRAINT project_targets_pkey PRIMARY KEY (org, project, "window");

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_org_slug_key UNIQUE (org, slug);

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.push_events
    ADD CONSTRAINT push_events_pkey PRIMARY KEY (org, monitor, at);

ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, code_hash);

ALTER TABLE ONLY public.repairs
    ADD CONSTRAINT repairs_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.reset_requests
    ADD CONSTRAINT reset_requests_pkey PRIMARY KEY (address);

ALTER TABLE ONLY public.run_batches
    ADD CONSTRAINT run_batches_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.service_alerting
    ADD CONSTRAINT service_alerting_pkey PRIMARY KEY (org, service);

ALTER TABLE ONLY public.service_days
    ADD CONSTRAINT service_days_pkey PRIMARY KEY (org, service, start, epoch);

ALTER TABLE ONLY public.service_dependencies
    ADD CONSTRAINT service_dependencies_pkey PRIMARY KEY (org, service, upstream);

ALTER TABLE ONLY public.service_dependency_terms
    ADD CONSTRAINT service_dependency_terms_pkey PRIMARY KEY (org, service, upstream, from_at);

ALTER TABLE ONLY public.service_episodes
    ADD CONSTRAINT service_episodes_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.service_epochs
    ADD CONSTRAINT service_epochs_org_service_effective_at_key UNIQUE (org, service, effective_at);

ALTER TABLE ONLY public.service_epochs
    ADD CONSTRAINT service_epochs_pkey PRIMARY KEY (org, service, seq);

ALTER TABLE ONLY public.service_hours
    ADD CONSTRAINT service_hours_pkey PRIMARY KEY (org, service, start, epoch);

ALTER TABLE ONLY public.service_minutes
    ADD CONSTRAINT service_minutes_pkey PRIMARY KEY (org, service, from_at);

ALTER TABLE ONLY public.service_revisions
    ADD CONSTRAINT service_revisions_pkey PRIMARY KEY (org, service, revision);

ALTER TABLE ONLY public.service_targets
    ADD CONSTRAINT service_targets_pkey PRIMARY KEY (org, service, "window");

ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_org_project_slug_key UNIQUE (org, project, slug);

ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_uid_key UNIQUE (uid);

ALTER TABLE ONLY public.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.settings
    ADD CONSTRAINT settings_uid_key UNIQUE (uid);

ALTER TABLE ONLY public.shards
    ADD CONSTRAINT shards_org_region_key UNIQUE (org, region);

ALTER TABLE ONLY public.shards
    ADD CONSTRAINT shards_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sign_on_flows
    ADD CONSTRAINT sign_on_flows_pkey PRIMARY KEY (state_hash);

ALTER TABLE ONLY public.status_changes
    ADD CONSTRAINT status_changes_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.status_components
    ADD CONSTRAINT status_components_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.status_page_domains
    ADD CONSTRAINT status_page_domains_org_page_key UNIQUE (org, page);

ALTER TABLE ONLY public.status_page_domains
    ADD CONSTRAINT status_page_domains_pkey PRIMARY KEY (domain);

ALTER TABLE ONLY public.status_pages
    ADD CONSTRAINT status_pages_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.status_pages
    ADD CONSTRAINT status_pages_slug_key UNIQUE (slug);

ALTER TABLE ONLY public.subscribers
    ADD CONSTRAINT subscribers_org_page_kind_address_key_key UNIQUE (org, page, kind, address_key);

ALTER TABLE ONLY public.subscribers
    ADD CONSTRAINT subscribers_pkey PRIMARY KEY (org, id);

ALTER TABLE ONLY public.subscribers
    ADD CONSTRAINT subscribers_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.subscription_requests
    ADD CONSTRAINT subscription_requests_pkey PRIMARY KEY (address_hash);

ALTER TABLE ONLY public.user_identities
    ADD CONSTRAINT user_identities_pkey PRIMARY KEY (issuer, subject);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_uid_key UNIQUE (uid);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (org, id);

CREATE INDEX api_tokens_hash ON public.api_tokens USING btree (token_hash);

CREATE INDEX api_tokens_uid ON public.api_tokens USING btree (uid);

CREATE UNIQUE INDEX burn_rules_monitor ON public.burn_rules USING btree (org, monitor, "window", place) WHERE (monitor IS NOT NULL);

CREATE UNIQUE INDEX burn_rules_service ON public.burn_rules USING btree (org, service, "window", place) WHERE (service IS NOT NULL);

CREATE UNIQUE INDEX burn_rules_uid ON public.burn_rules USING btree (org, uid);

CREATE UNIQUE INDEX change_phases_once ON public.change_phases USING btree (org, change, ((phase = 'started'::text)));

CREATE UNIQUE INDEX change_phases_uid ON public.change_phases USING btree (uid);

CREATE INDEX changes_started ON public.changes USING btree (org, service, started_at);

CREATE INDEX changes_timeline ON public.changes USING btree (org, service, latest_at, id);

CREATE INDEX check_tests_waiting ON public.check_tests USING btree (region, created_at) WHERE (holder IS NULL);

CREATE INDEX composite_terms_children ON public.composite_terms USING gin (children);

CREATE INDEX composite_terms_until ON public.composite_terms USING btree (until_at) WHERE (until_at < 'infinity'::timestamp with time zone);

CREATE INDEX composite_wakeups_due ON public.composite_wakeups USING btree (due_at);

CREATE INDEX deleted_monitors_id ON public.deleted_monitors USING btree (id);

CREATE INDEX escalation_policies_project ON public.escalation_policies USING btree (org, project);

CREATE INDEX escalation_policies_uid ON public.escalation_policies USING btree (uid);

CREATE INDEX escalation_targets_channel ON public.escalation_targets USING btree (org, channel);

CREATE INDEX escalation_targets_schedule ON public.escalation_targets USING btree (org, schedule);

CREATE INDEX gate_decisions_project ON ONLY public.gate_decisions USING btree (org, project, evaluated_at, uid);

CREATE INDEX gate_decisions_20260105_org_project_evaluated_at_uid_idx ON public.gate_decisions_20260105 USING btree (org, project, evaluated_at, uid);

CREATE INDEX gate_decisions_service ON ONLY public.gate_decisions USING btree (org, service, evaluated_at, uid);

CREATE INDEX gate_decisions_20260105_org_service_evaluated_at_uid_idx ON public.gate_decisions_20260105 USING btree (org, service, evaluated_at, uid);

CREATE INDEX gate_overrides_service ON public.gate_overrides USING btree (org, service, id);

CREATE UNIQUE INDEX gate_overrides_uid ON public.gate_overrides USING btree (uid);

CREATE UNIQUE INDEX gate_policies_governing ON public.gate_policies USING btree (org, project, service) NULLS NOT DISTINCT WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX gate_policies_revision ON public.gate_policies USING btree (org, project, service, revision) NULLS NOT DISTINCT;

CREATE INDEX incidents_escalate ON public.incidents USING btree (escalate_at) WHERE (escalate_at IS NOT NULL);

CREATE INDEX incidents_monitor ON public.incidents USING btree (org, monitor) WHERE (monitor IS NOT NULL);

CREATE UNIQUE INDEX incidents_one_of_alert ON public.incidents USING btree (org, project, external_key) WHERE ((external_key IS NOT NULL) AND (status <> 'resolved'::text));

CREATE UNIQUE INDEX incidents_one_of_monitor ON public.incidents USING btree (org, monitor) WHERE ((source = 'auto'::text) AND (monitor IS NOT NULL) AND (status <> 'resolved'::text));

CREATE UNIQUE INDEX incidents_one_of_service ON public.incidents USING btree (org, service) WHERE ((source = 'auto'::text) AND (service IS NOT NULL) AND (status <> 'resolved'::text));

CREATE INDEX incidents_open ON public.incidents USING btree (org, project, id DESC) WHERE (status <> 'resolved'::text);

CREATE INDEX incidents_project ON public.incidents USING btree (org, project, id DESC);

CREATE INDEX incidents_service ON public.incidents USING btree (org, service) WHERE (service IS NOT NULL);

CREATE INDEX incidents_service_started ON public.incidents USING btree (org, service, started_at) WHERE (service IS NOT NULL);

CREATE UNIQUE INDEX incidents_uid ON public.incidents USING btree (org, uid);

CREATE INDEX incidents_uid_alone ON public.incidents USING btree (uid);

CREATE INDEX jobs_due ON public.jobs USING btree (shard, due_at);

CREATE UNIQUE INDEX jobs_one ON public.jobs USING btree (org, monitor, reason);

CREATE INDEX maintenance_previews_expired ON public.maintenance_previews USING btree (expires_at);

CREATE INDEX maintenance_series_uid ON public.maintenance_series USING btree (uid);

CREATE INDEX maintenances_project ON public.maintenances USING btree (org, project, starts_at DESC);

CREATE INDEX maintenances_resume ON public.maintenances USING btree (LEAST(ends_at, cancel_effective_at)) WHERE ((resumed_at IS NULL) AND (archived_at IS NULL));

CREATE INDEX maintenances_uid ON public.maintenances USING btree (uid);

CREATE UNIQUE INDEX memberships_one ON public.memberships USING btree (org, user_id, COALESCE(project, 0));

CREATE INDEX memberships_uid ON public.memberships USING btree (uid);

CREATE INDEX memberships_user ON public.memberships USING btree (user_id);

CREATE INDEX monitor_channels_channel ON public.monitor_channels USING btree (org, channel);

CREATE INDEX monitor_terms_shard ON public.monitor_terms USING btree (shard, org, monitor);

CREATE UNIQUE INDEX monitors_bundle ON public.monitors USING btree (org, project, managed_by, bundle_uid) WHERE (bundle_uid IS NOT NULL);

CREATE INDEX monitors_escalation_policy ON public.monitors USING btree (org, escalation_policy) WHERE (escalation_policy IS NOT NULL);

CREATE INDEX monitors_id ON public.monitors USING btree (id);

CREATE INDEX monitors_push_token ON public.monitors USING btree (push_token_hash) WHERE (push_token_hash IS NOT NULL);

CREATE INDEX monitors_shard ON public.monitors USING btree (shard);

CREATE INDEX monitors_superseded ON public.monitors USING btree (org, superseded_by) WHERE (superseded_by IS NOT NULL);

CREATE INDEX monitors_uid ON public.monitors USING btree (uid);

CREATE INDEX notification_channels_project ON public.notification_channels USING btree (org, project);

CREATE INDEX notification_channels_uid ON public.notification_channels USING btree (uid);

CREATE INDEX oncall_overrides_channel ON public.oncall_overrides USING btree (org, channel);

CREATE INDEX oncall_overrides_schedule ON public.oncall_overrides USING btree (org, schedule, ends_at);

CREATE INDEX oncall_overrides_uid ON public.oncall_overrides USING btree (uid);

CREATE INDEX oncall_participants_channel ON public.oncall_participants USING btree (org, channel);

CREATE INDEX oncall_schedules_project ON public.oncall_schedules USING btree (org, project);

CREATE INDEX oncall_schedules_token ON public.oncall_schedules USING btree (calendar_token_hash) WHERE (calendar_token_hash IS NOT NULL);

CREATE INDEX oncall_schedules_uid ON public.oncall_schedules USING btree (uid);

CREATE INDEX outages_monitor ON public.outages USING btree (org, monitor, began_at DESC);

CREATE INDEX outages_next_check ON public.outages USING btree (next_check_at) WHERE ((ended_at IS NULL) AND (next_check_at IS NOT NULL));

CREATE UNIQUE INDEX outages_open ON public.outages USING btree (org, monitor) WHERE (ended_at IS NULL);

CREATE INDEX outbox_dead ON public.outbox USING btree (updated_at DESC, id) WHERE (status = 'dead'::text);

CREATE INDEX outbox_delivered ON public.outbox USING btree (updated_at) WHERE (status = 'delivered'::text);

CREATE INDEX outbox_leased ON public.outbox USING btree (org, destination) WHERE (lease IS NOT NULL);

CREATE INDEX outbox_ready ON public.outbox USING btree (org, destination, due_at, id) WHERE ((status = 'pending'::text) AND ready);

CREATE INDEX outbox_stream ON public.outbox USING btree (org, destination, stream, id) WHERE (status <> 'delivered'::text);

CREATE INDEX outbox_thread ON public.outbox USING btree (org, thread, id);

CREATE INDEX outbox_uid ON public.outbox USING btree (uid);

CREATE INDEX presences_through ON public.presences USING btree (through_at);

CREATE INDEX project_secrets_updated ON public.project_secrets USING btree (updated_at);

CREATE INDEX projects_uid ON public.projects USING btree (uid);

CREATE INDEX repairs_due ON public.repairs USING btree (due_at);

CREATE INDEX reset_requests_due ON public.reset_requests USING btree (due_at);

CREATE INDEX run_batches_canary ON public.run_batches USING btree (shard, first_due) WHERE ((kind = 'canary'::text) AND published);

CREATE INDEX run_batches_composite ON public.run_batches USING btree (first_due) WHERE ((kind = 'composite'::text) AND published);

CREATE INDEX run_batches_open ON public.run_batches USING btree (shard, first_due) WHERE ((kind = 'run'::text) AND published);

CREATE INDEX run_batches_seal ON public.run_batches USING btree (shard, first_seal);

CREATE INDEX service_alerting_due ON public.service_alerting USING btree (due_at);

CREATE INDEX service_dependencies_upstream ON public.service_dependencies USING btree (org, upstream);

CREATE INDEX service_dependency_terms_upstream ON public.service_dependency_terms USING btree (org, upstream);

CREATE UNIQUE INDEX service_episodes_open ON public.service_episodes USING btree (org, service) WHERE (ended_at IS NULL);

CREATE INDEX service_revisions_monitors ON public.service_revisions USING gin (monitors);

CREATE UNIQUE INDEX services_bundle ON public.services USING btree (org, project, managed_by, bundle_uid) WHERE (bundle_uid IS NOT NULL);

CREATE INDEX services_escalation_policy ON public.services USING btree (org, escalation_policy) WHERE (escalation_policy IS NOT NULL);

CREATE INDEX services_oncall_schedule ON public.services USING btree (org, oncall_schedule) WHERE (oncall_schedule IS NOT NULL);

CREATE INDEX services_uid ON public.services USING btree (uid);

CREATE INDEX sessions_expiry ON public.sessions USING btree (expires_at);

CREATE INDEX sessions_user ON public.sessions USING btree (user_id);

CREATE INDEX sign_on_flows_expiry ON public.sign_on_flows USING btree (expires_at);

CREATE INDEX status_changes_monitor ON public.status_changes USING btree (org, monitor, id);

CREATE INDEX status_components_monitor ON public.status_components USING btree (org, monitor) WHERE (monitor IS NOT NULL);

CREATE INDEX status_components_page ON public.status_components USING btree (org, page, "position", id);

CREATE INDEX status_components_service ON public.status_components USING btree (org, service) WHERE (service IS NOT NULL);

CREATE INDEX status_components_uid ON public.status_components USING btree (uid);

CREATE INDEX status_pages_project ON public.status_pages USING btree (org, project);

CREATE INDEX status_pages_uid ON public.status_pages USING btree (uid);

CREATE INDEX subscribers_page ON public.subscribers USING btree (org, page, id);

CREATE INDEX subscribers_uid ON public.subscribers USING btree (uid);

CREATE INDEX subscribers_unconfirmed ON public.subscribers USING btree (requested_at) WHERE (confirmed_at IS NULL);

CREATE INDEX subscription_requests_at ON public.subscription_requests USING btree (requested_at);

CREATE INDEX user_identities_user ON public.user_identities USING btree (user_id);

CREATE UNIQUE INDEX users_email ON public.users USING btree (lower(email)) WHERE (email_verified AND (email <> ''::text));

CREATE INDEX webhooks_uid ON public.webhooks USING btree (uid);

ALTER INDEX public.expected_runs_pkey ATTACH PARTITION public.expected_runs_20260105_pkey;

ALTER INDEX public.gate_decisions_project ATTACH PARTITION public.gate_decisions_20260105_org_project_evaluated_at_uid_idx;

ALTER INDEX public.gate_decisions_service ATTACH PARTITION public.gate_decisions_20260105_org_service_evaluated_at_uid_idx;

ALTER INDEX public.gate_decisions_pkey ATTACH PARTITION public.gate_decisions_20260105_pkey;

ALTER INDEX public.heartbeats_pkey ATTACH PARTITION public.heartbeats_20260105_pkey;

CREATE TRIGGER audit_entries_append_only BEFORE DELETE OR UPDATE ON public.audit_entries FOR EACH ROW EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER change_phases_not_emptied BEFORE TRUNCATE ON public.change_phases FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_to_change();

CREATE TRIGGER change_phases_only_added BEFORE UPDATE ON public.change_phases FOR EACH ROW EXECUTE FUNCTION public.refuse_to_change();

CREATE TRIGGER change_phases_stay BEFORE DELETE ON public.change_phases FOR EACH ROW WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION public.refuse_to_change();

CREATE TRIGGER gate_decisions_not_emptied BEFORE TRUNCATE ON public.gate_decisions FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_to_change();

CREATE TRIGGER gate_decisions_not_emptied BEFORE TRUNCATE ON public.gate_decisions_20260105 FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_to_change();

CREATE TRIGGER gate_decisions_only_added BEFORE DELETE OR UPDATE ON public.gate_decisions FOR EACH ROW EXECUTE FUNCTION public.refuse_to_change();

ALTER TABLE ONLY public.agent_tokens
    ADD CONSTRAINT agent_tokens_created_by_fkey FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_created_by_fkey FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_org_fkey FOREIGN KEY (org) REFERENCES public.organizations(id);

ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.bundle_files
    ADD CONSTRAINT bundle_files_provider_fkey FOREIGN KEY (provider) REFERENCES public.bundle_providers(provider) ON DELETE CASCADE;

ALTER TABLE ONLY public.burn_rules
    ADD CONSTRAINT burn_rules_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.burn_rules
    ADD CONSTRAINT burn_rules_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.change_phases
    ADD CONSTRAINT change_phases_org_change_fkey FOREIGN KEY (org, change) REFERENCES public.changes(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.changes
    ADD CONSTRAINT changes_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.deleted_monitor_terms
    ADD CONSTRAINT deleted_monitor_terms_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.deleted_monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_org_channel_fkey FOREIGN KEY (org, channel) REFERENCES public.notification_channels(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_org_page_fkey FOREIGN KEY (org, page) REFERENCES public.status_pages(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_org_subscriber_fkey FOREIGN KEY (org, subscriber) REFERENCES public.subscribers(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.destinations
    ADD CONSTRAINT destinations_org_webhook_fkey FOREIGN KEY (org, webhook) REFERENCES public.webhooks(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.escalation_policies
    ADD CONSTRAINT escalation_policies_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.escalation_targets
    ADD CONSTRAINT escalation_targets_org_channel_fkey FOREIGN KEY (org, channel) REFERENCES public.notification_channels(org, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.escalation_targets
    ADD CONSTRAINT escalation_targets_org_policy_fkey FOREIGN KEY (org, policy) REFERENCES public.escalation_policies(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.escalation_targets
    ADD CONSTRAINT escalation_targets_org_schedule_fkey FOREIGN KEY (org, schedule) REFERENCES public.oncall_schedules(org, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.gate_overrides
    ADD CONSTRAINT gate_overrides_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.gate_policies
    ADD CONSTRAINT gate_policies_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.gate_policies
    ADD CONSTRAINT gate_policies_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.incident_pages
    ADD CONSTRAINT incident_pages_org_incident_fkey FOREIGN KEY (org, incident) REFERENCES public.incidents(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.incident_updates
    ADD CONSTRAINT incident_updates_author_fkey FOREIGN KEY (author) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.incident_updates
    ADD CONSTRAINT incident_updates_org_incident_fkey FOREIGN KEY (org, incident) REFERENCES public.incidents(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT incidents_acknowledged_by_fkey FOREIGN KEY (acknowledged_by) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT incidents_org_escalation_policy_fkey FOREIGN KEY (org, escalation_policy) REFERENCES public.escalation_policies(org, id) ON DELETE SET NULL (escalation_policy);

ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT incidents_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE SET NULL (monitor);

ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT incidents_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT incidents_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE SET NULL (service);

ALTER TABLE ONLY public.maintenance_previews
    ADD CONSTRAINT maintenance_previews_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.maintenance_series
    ADD CONSTRAINT maintenance_series_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.maintenance_series
    ADD CONSTRAINT maintenance_series_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.maintenances
    ADD CONSTRAINT maintenances_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_org_fkey FOREIGN KEY (org) REFERENCES public.organizations(id);

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.monitor_channels
    ADD CONSTRAINT monitor_channels_org_channel_fkey FOREIGN KEY (org, channel) REFERENCES public.notification_channels(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.monitor_channels
    ADD CONSTRAINT monitor_channels_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.monitor_states
    ADD CONSTRAINT monitor_states_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.monitor_targets
    ADD CONSTRAINT monitor_targets_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.monitor_terms
    ADD CONSTRAINT monitor_terms_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.monitors
    ADD CONSTRAINT monitors_org_escalation_policy_fkey FOREIGN KEY (org, escalation_policy) REFERENCES public.escalation_policies(org, id);

ALTER TABLE ONLY public.monitors
    ADD CONSTRAINT monitors_org_fkey FOREIGN KEY (org) REFERENCES public.organizations(id);

ALTER TABLE ONLY public.monitors
    ADD CONSTRAINT monitors_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id);

ALTER TABLE ONLY public.monitors
    ADD CONSTRAINT monitors_org_superseded_by_fkey FOREIGN KEY (org, superseded_by) REFERENCES public.services(org, id) ON DELETE SET NULL (superseded_by);

ALTER TABLE ONLY public.monitors
    ADD CONSTRAINT monitors_shard_fkey FOREIGN KEY (shard) REFERENCES public.shards(id);

ALTER TABLE ONLY public.notification_channels
    ADD CONSTRAINT notification_channels_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.notification_threads
    ADD CONSTRAINT notification_threads_org_destination_fkey FOREIGN KEY (org, destination) REFERENCES public.destinations(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.oncall_overrides
    ADD CONSTRAINT oncall_overrides_org_channel_fkey FOREIGN KEY (org, channel) REFERENCES public.notification_channels(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.oncall_overrides
    ADD CONSTRAINT oncall_overrides_org_schedule_fkey FOREIGN KEY (org, schedule) REFERENCES public.oncall_schedules(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.oncall_participants
    ADD CONSTRAINT oncall_participants_org_channel_fkey FOREIGN KEY (org, channel) REFERENCES public.notification_channels(org, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.oncall_participants
    ADD CONSTRAINT oncall_participants_org_schedule_fkey FOREIGN KEY (org, schedule) REFERENCES public.oncall_schedules(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.oncall_schedules
    ADD CONSTRAINT oncall_schedules_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.outages
    ADD CONSTRAINT outages_org_incident_fkey FOREIGN KEY (org, incident) REFERENCES public.incidents(org, id) ON DELETE SET NULL (incident);

ALTER TABLE ONLY public.outages
    ADD CONSTRAINT outages_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.outages
    ADD CONSTRAINT outages_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE SET NULL (service);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_org_destination_fkey FOREIGN KEY (org, destination) REFERENCES public.destinations(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.password_resets
    ADD CONSTRAINT password_resets_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.postmortems
    ADD CONSTRAINT postmortems_author_fkey FOREIGN KEY (author) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.postmortems
    ADD CONSTRAINT postmortems_org_incident_fkey FOREIGN KEY (org, incident) REFERENCES public.incidents(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.probe_errors
    ADD CONSTRAINT probe_errors_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.project_secrets
    ADD CONSTRAINT project_secrets_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.project_targets
    ADD CONSTRAINT project_targets_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_org_fkey FOREIGN KEY (org) REFERENCES public.organizations(id);

ALTER TABLE ONLY public.push_events
    ADD CONSTRAINT push_events_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_alerting
    ADD CONSTRAINT service_alerting_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_days
    ADD CONSTRAINT service_days_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_dependencies
    ADD CONSTRAINT service_dependencies_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_dependencies
    ADD CONSTRAINT service_dependencies_org_upstream_fkey FOREIGN KEY (org, upstream) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_dependency_terms
    ADD CONSTRAINT service_dependency_terms_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_dependency_terms
    ADD CONSTRAINT service_dependency_terms_org_upstream_fkey FOREIGN KEY (org, upstream) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_episodes
    ADD CONSTRAINT service_episodes_org_incident_fkey FOREIGN KEY (org, incident) REFERENCES public.incidents(org, id) ON DELETE SET NULL (incident);

ALTER TABLE ONLY public.service_episodes
    ADD CONSTRAINT service_episodes_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_epochs
    ADD CONSTRAINT service_epochs_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_hours
    ADD CONSTRAINT service_hours_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_minutes
    ADD CONSTRAINT service_minutes_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_revisions
    ADD CONSTRAINT service_revisions_created_by_fkey FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.service_revisions
    ADD CONSTRAINT service_revisions_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.service_targets
    ADD CONSTRAINT service_targets_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_org_escalation_policy_fkey FOREIGN KEY (org, escalation_policy) REFERENCES public.escalation_policies(org, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_org_oncall_schedule_fkey FOREIGN KEY (org, oncall_schedule) REFERENCES public.oncall_schedules(org, id) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sign_on_flows
    ADD CONSTRAINT sign_on_flows_link_user_fkey FOREIGN KEY (link_user) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.status_components
    ADD CONSTRAINT status_components_org_monitor_fkey FOREIGN KEY (org, monitor) REFERENCES public.monitors(org, id) ON DELETE SET NULL (monitor);

ALTER TABLE ONLY public.status_components
    ADD CONSTRAINT status_components_org_page_fkey FOREIGN KEY (org, page) REFERENCES public.status_pages(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.status_components
    ADD CONSTRAINT status_components_org_service_fkey FOREIGN KEY (org, service) REFERENCES public.services(org, id) ON DELETE SET NULL (service);

ALTER TABLE ONLY public.status_page_domains
    ADD CONSTRAINT status_page_domains_org_page_fkey FOREIGN KEY (org, page) REFERENCES public.status_pages(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.status_pages
    ADD CONSTRAINT status_pages_org_fkey FOREIGN KEY (org) REFERENCES public.organizations(id);

ALTER TABLE ONLY public.status_pages
    ADD CONSTRAINT status_pages_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.subscribers
    ADD CONSTRAINT subscribers_org_page_fkey FOREIGN KEY (org, page) REFERENCES public.status_pages(org, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.user_identities
    ADD CONSTRAINT user_identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_created_by_fkey FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_org_fkey FOREIGN KEY (org) REFERENCES public.organizations(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_org_project_fkey FOREIGN KEY (org, project) REFERENCES public.projects(org, id) ON DELETE CASCADE;
