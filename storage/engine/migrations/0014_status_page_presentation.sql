-- Latency plot of a component on its status page.

alter table status_components add column show_latency boolean not null default false;

-- Branding of a status page. An empty field is that of the installation.

alter table status_pages add column accent_color text not null default '';
alter table status_pages add column logo_url text not null default '';
alter table status_pages add column footer_text text not null default '';
alter table status_pages add column support_url text not null default '';
